import Model
import TestKit
import Testing

@testable import TextFormats

/// What Debian's packages log as they are installed (12 and 13): lines in their own formats, with what makes
/// them awkward. Each file is one that `check --sample FILE` must know, so that one line of configuration,
/// `parse`, is all that an operator adds.
@Suite("Logs of packages")
struct PackageLogTests {
    /// A file, the format that it has, how many records it is, and how many of them have no time: what
    /// journalctl and the slow query log say about themselves.
    static let files: [(file: String, format: String, records: Int, untimed: Int)] = [
        ("nginx-access.log", "nginx", 5, 0), ("apache-access.log", "nginx", 15, 0),
        ("apache-error.log", "apache_error", 6, 0), ("haproxy.log", "haproxy", 2, 0),
        ("nginx-error.log", "nginx_error", 7, 0),
        ("postgresql.log", "postgresql", 14, 0), ("redis-server.log", "redis", 15, 0),
        ("mariadb-error.log", "mysql_error", 8, 0), ("mysql-error.log", "mysql_error", 6, 0),
        ("mariadb-slow.log", "mysql_slow", 3, 1), ("mysql-slow.log", "mysql_slow", 3, 1),
        ("syslog", "syslog", 7, 0), ("auth.log", "syslog", 7, 0), ("auth-debian11.log", "syslog", 3, 0),
        ("kern.log", "syslog", 3, 0), ("spring.log", "java", 4, 0), ("logback.log", "java", 3, 0),
        ("log4j2.log", "java", 2, 0), ("jul.log", "java", 3, 0), ("tomcat.out", "java", 3, 0),
        ("journal-short.txt", "syslog", 6, 1), ("journal-iso.txt", "syslog", 3, 0),
        ("journal-precise.txt", "syslog", 2, 0), ("journal-full.txt", "syslog", 2, 0),
    ]

    @Test("each file is guessed, all its records are parsed, with their own times", arguments: files)
    func known(file: String, name: String, count: Int, untimed: Int) throws {
        let bytes = try Fixture.bytes("packages/\(file)")
        let guess = bytes.withUnsafeBytes { FormatGuess.of($0) }
        #expect(guess == FormatGuess(name: name, matched: count, records: count))
        let format = try format(name)
        let found = try records(bytes, format).map { members(try parsed(format, $0.bytes).get()) }
        #expect(found.count == count)
        #expect(found.count { $0["timestamp"] == nil } == untimed, "\(found)")
        if !["nginx", "haproxy", "syslog"].contains(name) {
            #expect(found.allSatisfy { $0["message"] != nil }, "\(found)")
        }
    }

    /// The members of the record of a file that has a member with a value.
    private func record(_ file: String, _ name: String, where key: String, is value: JSONValue) throws
        -> [String: JSONValue]
    {
        let format = try format(name)
        let found = try records(try Fixture.bytes("packages/\(file)"), format).map {
            members(try parsed(format, $0.bytes).get())
        }
        return try #require(found.first { $0[key] == value }, "\(found)")
    }

    @Test("java.util.logging: the level of the second line, the time with AM and PM, and the stack trace")
    func halfDays() throws {
        let failed = try record("jul.log", "java", where: "level", is: "SEVERE")
        #expect(failed["timestamp"] == "2026-11-29T10:00:01.000Z")
        #expect(failed["logger"] == "com.example.shop.Cart" && failed["method"] == "pay")
        guard case .string(let message)? = failed["message"] else { return #expect(Bool(false)) }
        #expect(message.hasPrefix("failed\njava.lang.IllegalStateException: order 7\n"))
        #expect(message.hasSuffix("\t... 2 more"))
        let slow = try record("jul.log", "java", where: "level", is: "WARNING")
        #expect(slow["timestamp"] == "2026-11-29T13:00:02.000Z")
    }

    @Test("nginx: what PHP writes to its stderr is one record with its stack trace, and has its client")
    func fastCGI() throws {
        let found = try record("nginx-error.log", "nginx_error", where: "cid", is: 9)
        #expect(found["client"] == "192.0.2.7" && found["host"] == "192.0.2.1" && found["level"] == "error")
        guard case .string(let message)? = found["message"] else { return #expect(Bool(false)) }
        #expect(message.contains("\nStack trace:\n#0 {main}\n"))
        #expect(message.hasSuffix("line 3\" while reading response header from upstream"))
    }

    @Test("the header of a slow query log begins a record, also in the middle: after FLUSH LOGS")
    func slowHeader() throws {
        let header = "/usr/sbin/mysqld, Version: 8.0.44 (MySQL). started with:\nTcp port: 3306\nTime    Id\n"
        let query = "# Time: 2026-11-29T09:00:10.5Z\n# Query_time: 2.0  Lock_time: 0.0\nselect sleep(2);\n"
        let format = try format("mysql_slow")
        let found = try records(Array((header + query + header + query).utf8), format).map {
            members(try parsed(format, $0.bytes).get())
        }
        #expect(found.count == 4)
        #expect(found[1]["message"] == "select sleep(2);" && found[1] == found[3] && found[0] == found[2])
    }

    @Test("journalctl's full form: the zone behind the time, and the host behind the zone")
    func fullForm() throws {
        let found = try record("journal-full.txt", "syslog", where: "program", is: "sshd")
        #expect(found["timestamp"] == "2026-11-29T09:00:01.000Z")
        #expect(found["host"] == "web-1" && found["pid"] == 1701)
    }
}

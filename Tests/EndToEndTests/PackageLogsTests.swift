import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    @Suite("Logs of packages")
    struct PackageLogsTests {
        /// A log as a package of Debian writes it, and what must arrive of it.
        private struct Log {
            /// Name in the fixtures of packages.
            let file: String
            /// The format that `check --sample` must propose.
            let format: String
            /// Number of records, and of those that say no time: headers of the journal and of the slow log.
            let records: Int
            var untimed = 0
            /// The severities of its records, with blanks between them; `-` for none.
            var levels = "-"
            /// Text that must be in one of its records: fields that the format has found.
            let fields: String

            /// Name of the app: the file's, as an app may be called.
            var app: String { String(file.map { $0 == "." ? "-" : $0 }) }
        }

        private static let logs = [
            Log(file: "nginx-access.log", format: "nginx", records: 5, fields: #""method":"GET""#),
            Log(
                file: "nginx-error.log", format: "nginx_error", records: 7, levels: "error fatal info warn",
                fields: #""client":"192.0.2.7""#),
            Log(
                file: "apache-access.log", format: "nginx", records: 15,
                fields: #""protocol":"HTTP/1.1""#),
            Log(
                file: "apache-error.log", format: "apache_error", records: 6, levels: "error info warn",
                fields: #""module":"authz_core""#),
            Log(file: "haproxy.log", format: "haproxy", records: 2, fields: #""backend":"static""#),
            Log(
                file: "postgresql.log", format: "postgresql", records: 14, levels: "error fatal info warn",
                fields: #""pid":"#),
            Log(
                file: "redis-server.log", format: "redis", records: 15, levels: "- debug info warn",
                fields: #""role":"#),
            Log(
                file: "mariadb-error.log", format: "mysql_error", records: 8, levels: "error info warn",
                fields: #""thread":"#),
            Log(
                file: "mysql-error.log", format: "mysql_error", records: 6, levels: "error info warn",
                fields: #""thread":"#),
            Log(
                file: "mariadb-slow.log", format: "mysql_slow", records: 3, untimed: 1,
                fields: #""query_time":"#),
            Log(
                file: "mysql-slow.log", format: "mysql_slow", records: 3, untimed: 1,
                fields: #""query_time":"#),
            Log(file: "syslog", format: "syslog", records: 7, fields: #""program":"#),
            Log(file: "auth.log", format: "syslog", records: 7, fields: #""program":"sshd""#),
            Log(file: "auth-debian11.log", format: "syslog", records: 3, fields: #""program":"sshd""#),
            Log(file: "kern.log", format: "syslog", records: 3, fields: #""program":"kernel""#),
            Log(
                file: "spring.log", format: "java", records: 4, levels: "debug error info warn",
                fields: #""logger":"#),
            Log(
                file: "tomcat.out", format: "java", records: 3, levels: "error info warn",
                fields: #""logger":"#),
            Log(
                file: "jul.log", format: "java", records: 3, levels: "error info warn",
                fields: #"\n\t... 2 more""#),
            Log(
                file: "journal-short.txt", format: "syslog", records: 6, untimed: 1,
                fields: #""program":"#),
            Log(file: "journal-iso.txt", format: "syslog", records: 3, fields: #""program":"#),
            Log(file: "journal-precise.txt", format: "syslog", records: 2, fields: #""program":"#),
            Log(file: "journal-full.txt", format: "syslog", records: 2, fields: #""program":"sshd""#),
        ]

        @Test(
            "two lines of configuration each, as check --sample says: records with time, severity and fields")
        func story() throws {
            let bench = try Workbench()
            // The fixtures are of one day, and tests run on any.
            bench.settings["queue.max_age"] = "\"3650d\""
            bench.settings["limits.max_time_ahead"] = "0"
            try #require(mkdir("\(bench.path)/log", 0o755) == 0)
            for log in PackageLogsTests.logs {
                let text = try contents(
                    of: "\(GoldenFile.root)/Tests/TextFormatsTests/Fixtures/packages/\(log.file)")
                let path = "\(bench.path)/log/\(log.file)"
                try write(text, to: path)
                let sample = try run(spoolship, ["check", "--sample", path])
                let proposal = sample.text.split(separator: "\n").first { $0.contains(": add parse = ") }
                #expect(
                    sample.code == 0 && proposal?.contains("add parse = \"\(log.format)\" to [apps.") == true,
                    "\(log.file): \(sample.text)")
                bench.settings["apps.\(log.app).read"] = "[\"\(path)\"]"
                bench.settings["apps.\(log.app).parse"] =
                    proposal.flatMap { $0.split(separator: "\"").dropFirst().first }.map { "\"\($0)\"" }
            }
            try bench.startReceiver()
            try bench.startAgent()
            let expected = PackageLogsTests.logs.reduce(0) { $0 + $1.records }
            try bench.waitUntilDelivered(expected)
            let lines = try contents(of: bench.events).split(separator: "\n")
            for log in PackageLogsTests.logs {
                let found = lines.filter { $0.contains("\"app\":\"\(log.app)\"") }
                let shown = "\(log.file):\n\(found.joined(separator: "\n"))"
                #expect(found.count == log.records, "\(shown)")
                #expect(found.count { !$0.contains("\"timestamp\":\"20") } == log.untimed, "\(shown)")
                let levels = Set(
                    found.map { values(of: "severity", in: Array($0.utf8)).first ?? "-" })
                #expect(levels.sorted().joined(separator: " ") == log.levels, "\(shown)")
                #expect(found.contains { $0.contains(log.fields) }, "\(log.fields) in \(shown)")
            }
            #expect(try bench.figures().total("spoolship_app_lines_not_parsed_total") == 0)
        }
    }
}

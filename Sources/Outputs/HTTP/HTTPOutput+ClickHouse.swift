internal import EventLoops
package import Model

/// The result of comparing a ClickHouse table with the members of events.
package enum TableComparison: Sendable, Equatable {
    /// The address contains no insert into a table that can be compared.
    case notClickHouse
    /// Members for which the table has no column. They are left out of the table, or, if `isRefused`, the
    /// server refuses every batch that has one.
    case columns(table: String, missing: [String], isRefused: Bool)
    /// The table could not be described.
    case failed(Failure)
}

extension HTTPOutput {
    /// Compares the table in the address with the members that are sent, by `DESCRIBE TABLE`; nothing is
    /// written. For `check`, so that a missing column is noticed before events are lost or refused.
    package func compareTable(with members: [String]) async -> TableComparison {
        guard let insert = ClickHouseInsert(options.url) else { return .notClickHouse }
        let request = HTTPRequest(
            url: asking(insert.url), headers: questionHeaders,
            body: Array("DESCRIBE TABLE \(insert.table) FORMAT JSONEachRow".utf8), answerLimit: 1 << 20)
        switch await client.perform(request) {
        case .failed(let failure), .noRoute(let failure): return .failed(failure)
        case .answered(let answer) where answer.status == 200:
            let columns = answer.body.split(separator: 0x0A).compactMap { JSONSlice($0)?["name"]?.string }
            return .columns(
                table: insert.table, missing: members.filter { !columns.contains($0) },
                isRefused: !insert.skipsUnknown)
        case .answered(let answer):
            let code = answer.clickHouseCode.map { "ClickHouse error \($0)" } ?? "status \(answer.status)"
            return .failed(Failure(kind: .status, message: "DESCRIBE TABLE \(insert.table): \(code)"))
        }
    }
}

extension HTTPOutput {
    /// Whether the inserts of the address are asynchronous, as far as can be seen: such inserts ignore
    /// `insert_deduplication_token`, and a batch that is sent twice is stored twice. If the address does not
    /// say, the server tells its default for this user.
    ///
    /// - Returns: nil if the server does not tell.
    package func insertsAsynchronously() async -> Bool? {
        guard let insert = ClickHouseInsert(options.url) else { return false }
        if let value = insert.asynchronous { return value != "0" && value != "false" }
        let request = HTTPRequest(
            url: asking(insert.url), headers: questionHeaders,
            body: Array("SELECT toString(getSetting('async_insert')) FORMAT TSV".utf8), answerLimit: 1 << 10)
        guard case .answered(let answer) = await client.perform(request), answer.status == 200 else {
            return nil
        }
        switch String(decoding: answer.body, as: UTF8.self) {
        case "1\n", "true\n": return true
        case "0\n", "false\n": return false
        default: return nil
        }
    }
}

/// The insert that an address contains in `query=INSERT INTO table FORMAT JSONEachRow`.
private struct ClickHouseInsert {
    /// Name of the table as it is written in the query.
    let table: String
    /// The address with only the arguments that say who asks and in which database.
    let url: String
    /// Whether the server drops members without a column (`input_format_skip_unknown_fields=1`); otherwise
    /// it refuses the batch.
    let skipsUnknown: Bool
    /// The value of `async_insert`; nil if the address does not have it.
    let asynchronous: String?

    /// - Returns: nil for an address without such an insert, or with a list of columns, which need not be
    ///   compared. A table name with a semicolon is refused, because it is put into another query.
    init?(_ url: String) {
        let parts = url.split(separator: "?", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let arguments = parts[1].split(separator: "&")
        guard let query = arguments.first(where: { $0.hasPrefix("query=") }) else { return nil }
        let words = ClickHouseInsert.decoded(query.dropFirst(6)).split { $0 == " " || $0 == "\n" }
        let rest = words.dropFirst(words.count > 2 && words[2].lowercased() == "table" ? 3 : 2)
        guard words.prefix(2).map({ $0.lowercased() }) == ["insert", "into"], rest.count == 3,
            let table = rest.first,
            rest.dropFirst().map({ $0.lowercased() }) == ["format", "jsoneachrow"],
            table.utf8.allSatisfy({ UInt8(ascii: ";") != $0 && $0 > 0x20 })
        else { return nil }
        self.table = String(table)
        // The other arguments are settings of the insert, which a question must not have.
        let kept = ["database=", "user=", "password=", "role="]
        self.url =
            parts[0] + "?"
            + arguments.filter { argument in kept.contains { argument.hasPrefix($0) } }.joined(separator: "&")
        skipsUnknown = arguments.contains("input_format_skip_unknown_fields=1")
        let name = "async_insert="
        asynchronous = arguments.last { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
    }

    /// Decodes an argument, in which `+` is a space.
    private static func decoded(_ text: Substring) -> String {
        HTTPAddress.decoded(String(text.map { $0 == "+" ? " " : $0 }))
    }
}

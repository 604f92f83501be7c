internal import CCurl
internal import EventLoops
package import Model

package enum TableComparison: Sendable, Equatable {
    case notClickHouse
    /// The table has no column for these members: they are left out, or every batch is refused.
    case columns(table: String, missing: [String], isRefused: Bool)
    case failed(Failure)
}

extension HTTPOutput {
    /// Compares the address's table with the members that are sent, by `DESCRIBE TABLE`: nothing is written.
    package func compareTable(with members: [String]) async -> TableComparison {
        guard let insert = ClickHouseInsert(options.url) else { return .notClickHouse }
        let request = HTTPRequest(
            url: insert.url, headers: questionHeaders,
            body: Array("DESCRIBE TABLE \(insert.table) FORMAT JSONEachRow".utf8), answerLimit: 1 << 20)
        switch await client.perform(request) {
        case .failed(let failure), .noRoute(let failure): return .failed(failure)
        case .answered(let answer) where answer.status == 200:
            let columns = answer.body.split(separator: 0x0A).compactMap { JSONSlice($0)?["name"]?.string }
            return .columns(
                table: insert.table, missing: members.filter { !columns.contains($0) }, isRefused: !insert.skipsUnknown)
        case .answered(let answer):
            let code = answer.clickHouseCode.map { "ClickHouse error \($0)" } ?? "status \(answer.status)"
            return .failed(Failure(kind: .status, message: "DESCRIBE TABLE \(insert.table): \(code)"))
        }
    }
}

private struct ClickHouseInsert {
    let table: String
    /// The address without its query and settings.
    let url: String
    /// Whether members without a column are left out; otherwise the server refuses the batch.
    let skipsUnknown: Bool

    /// Nil for an address without `INSERT INTO table FORMAT JSONEachRow`, or where the columns are listed.
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
        // The others are settings of the insert.
        let kept = ["database=", "user=", "password=", "role="]
        self.url =
            parts[0] + "?"
            + arguments.filter { argument in kept.contains { argument.hasPrefix($0) } }.joined(separator: "&")
        skipsUnknown = arguments.contains("input_format_skip_unknown_fields=1")
    }

    private static func decoded(_ text: Substring) -> String {
        guard let decoded = curl_easy_unescape(nil, String(text.map { $0 == "+" ? " " : $0 }), 0, nil) else {
            return ""
        }
        defer { curl_free(decoded) }
        return String(cString: decoded)
    }
}

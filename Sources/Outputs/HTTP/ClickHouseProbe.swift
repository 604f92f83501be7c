public import EventLoops
public import Model

/// Compares a ClickHouse table with the members sent to it, by `DESCRIBE TABLE`: nothing is written.
public enum ClickHouseProbe {
    /// What an address of ClickHouse inserts into, and how.
    private struct Insert {
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
            let words = Insert.decoded(query.dropFirst(6)).split { $0 == " " || $0 == "\n" }
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
            var bytes: [UInt8] = []
            var rest = text.utf8[...]
            while let byte = rest.popFirst() {
                if byte == UInt8(ascii: "%"), let value = UInt8(String(rest.prefix(2)) ?? "", radix: 16) {
                    bytes.append(value)
                    rest = rest.dropFirst(2)
                } else {
                    bytes.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// What was found.
    public enum Result: Sendable, Equatable {
        /// It is no insert into one of ClickHouse's tables.
        case notClickHouse
        /// The table has no column for these members: they are left out, or every batch is refused.
        case columns(table: String, missing: [String], isRefused: Bool)
        /// The table could not be looked at.
        case failed(Failure)
    }

    /// One attempt. Blocks, for the options' `requestTimeout` at most; sends the credentials.
    ///
    /// - Parameter members: those that events and records are sent with.
    /// - Throws: `OutputError` for settings without meaning, and files that cannot be read.
    public static func attempt(_ options: HTTPOptions, members: [String]) throws(OutputError) -> Result {
        guard let insert = Insert(options.url) else { return .notClickHouse }
        var material = try TLSMaterial(options.settings.tls)
        try material.refresh()
        let contents = material.contents
        var secret = try options.settings.login?.secret.map { source throws(OutputError) in try SecretProvider(source) }
        try secret?.refresh()
        var headers = ["Expect:"] + options.settings.sortedHeaders.map { "\($0.name): \($0.value)" }
        let place = NDJSONEncoder().traits.tokenPlace
        if case .header(let line)? = try options.credential(secret?.current, in: place) { headers.append(line) }
        let request = HTTPRequest(
            url: insert.url, headers: headers, body: Array("DESCRIBE TABLE \(insert.table) FORMAT JSONEachRow".utf8),
            answerLimit: 1 << 20)
        let result = try ConnectionProbe.run { loop throws(OutputError) in
            let client = try HTTPClient(on: loop, settings: TransferSettings(options: options, tls: contents))
            return { await client.perform(request) }
        }
        let answer: HTTPAnswer
        switch result {
        case .answered(let whole)?: answer = whole
        case .failed(let failure)?, .noRoute(let failure)?: return .failed(failure)
        case nil: return .failed(Failure(kind: .local, message: "no answer was waited for"))
        }
        guard answer.status == 200 else {
            let code = answer.clickHouseCode.map { "ClickHouse error \($0)" } ?? "status \(answer.status)"
            return .failed(Failure(kind: .status, message: "DESCRIBE TABLE \(insert.table): \(code)"))
        }
        let columns = answer.body.split(separator: 0x0A).compactMap { line in
            (try? JSONValue(parsing: Array(line)))?["name"]?.string
        }
        return .columns(
            table: insert.table, missing: members.filter { !columns.contains($0) }, isRefused: !insert.skipsUnknown)
    }
}

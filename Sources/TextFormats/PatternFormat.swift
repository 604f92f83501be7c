internal import CRE2

/// An RE2 expression that is compiled once; any thread may match it.
///
/// RE2 matches in linear time, so neither the settings nor the lines can cause the exponential time of
/// backtracking. Source: https://github.com/google/re2/wiki/WhyRE2.
final class TextExpression: @unchecked Sendable {
    // Unchecked, because the compiler cannot see that the C++ object is immutable after `init`, and that RE2
    // locks the automata that its matches share.
    private let compiled: OpaquePointer
    /// Names of the groups in their order in the expression; nil for a group without a name.
    let groups: [String?]

    /// Memory limit of RE2 for the expression and its automata, 8 MiB. RE2 refuses an expression that is
    /// larger compiled, and falls back to a slower automaton if the cache is full.
    private static let memory: Int64 = 8 << 20

    /// Compiles an expression.
    ///
    /// - Parameter key: the setting that the error names.
    init(_ text: String, key: String) throws(TextFormatError) {
        var message = [CChar](repeating: 0, count: 256)
        let made = cre2_compile_groups(text, text.utf8.count, TextExpression.memory, &message, message.count)
        guard let made else {
            let why = String(
                decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw TextFormatError(key: key, message: "not an RE2 expression: \(why)")
        }
        compiled = made
        var names: [String?] = []
        for index in 0..<cre2_group_count(made) {
            var name = [CChar](repeating: 0, count: 256)
            let length = cre2_group_name(made, index + 1, &name, name.count)
            names.append(
                length > 0
                    ? String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
            )
        }
        groups = names
    }

    deinit { cre2_groups_free(compiled) }

    /// Whether the expression matches somewhere in a text. Without groups RE2 need not find their places.
    func finds(_ text: Bytes) -> Bool {
        cre2_groups_match(compiled, text.start, text.count, nil, 0)
    }

    /// Matches a text and calls `body` with the places of the groups; a start of -1 means that a group took
    /// no part in the match. Returns false, without calling `body`, if nothing matches.
    func match(_ text: Bytes, _ body: (UnsafeBufferPointer<cre2_range>) -> Void) -> Bool {
        withUnsafeTemporaryAllocation(of: cre2_range.self, capacity: groups.count) { places in
            guard cre2_groups_match(compiled, text.start, text.count, places.baseAddress, groups.count) else {
                return false
            }
            body(UnsafeBufferPointer(places))
            return true
        }
    }
}

/// The format of `pattern`: each named group becomes a member.
struct TextPatternFormat: Sendable {
    /// The compiled expression.
    private let expression: TextExpression
    /// The same expression for texts that match it, without an automaton; nil if it needs one.
    private let plain: PlainPattern?
    /// The named groups: index among all groups, name in quotes with a colon, and whether `numbers` has the
    /// name.
    private let members: [(index: Int, name: [UInt8], isNumber: Bool)]

    /// Most groups of a pattern, named or not; bounds the work for each record.
    static let mostGroups = 64

    /// Compiles the expression and requires a named group: without one, all records would be empty objects.
    init(_ text: String, numbers: [String]) throws(TextFormatError) {
        expression = try TextExpression(text, key: "pattern")
        plain = PlainPattern(text)
        members = expression.groups.enumerated().compactMap { index, name in
            name.map { (index, RecordWriter.quotedName($0), numbers.contains($0)) }
        }
        guard !members.isEmpty, expression.groups.count <= TextPatternFormat.mostGroups else {
            throw TextFormatError(
                key: "pattern",
                message: "a pattern needs 1 to \(TextPatternFormat.mostGroups) named groups: (?P<name>...)")
        }
    }

    /// Names of the members that a record may have.
    var memberNames: [[UInt8]] { members.map { RecordWriter.name(quoted: $0.name) } }

    /// Writes the groups that took part in the match. As in templates, `-` is a missing value.
    func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        let record = reader.record
        let isFound = match(record) { groups in
            for member in members {
                let group = groups[member.index]
                guard group.start >= 0 else { continue }
                let value = Bytes(record.start + Int(group.start), Int(group.length))
                guard !value.equals("-") else { continue }
                if member.isNumber {
                    writer.number(quoted: member.name, value)
                } else {
                    writer.member(quoted: member.name, value)
                }
            }
        }
        return isFound ? true : reader.fail("the pattern")
    }

    /// Matches a text, and calls `body` with the places of the groups.
    @inline(__always)
    private func match(_ text: Bytes, _ body: (UnsafeBufferPointer<cre2_range>) -> Void) -> Bool {
        if let plain {
            let isFound = withUnsafeTemporaryAllocation(
                of: cre2_range.self, capacity: expression.groups.count
            ) { places in
                guard let first = places.baseAddress, plain.match(text, first) else { return false }
                body(UnsafeBufferPointer(places))
                return true
            }
            if isFound { return true }
        }
        return expression.match(text, body)
    }
}

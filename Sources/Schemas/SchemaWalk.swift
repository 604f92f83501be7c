internal import Events
internal import Glibc
internal import Model

/// One walk over the bytes of an event beside the nodes of its schema; ends at the first failure.
///
/// It recurses as deep as the event is nested, which the scanner bounds (64), and follows `$ref` chains at
/// each value. If a node and the node that it refers to both describe a member, that member is compared
/// twice, and what is below it four times, and so on. `steps` bounds that: otherwise a short line of an app
/// could keep the agent busy for years.
struct SchemaWalk {
    /// Nodes of the document, the root first.
    private let nodes: [SchemaNode]
    /// Beginning of the event.
    private let base: UnsafePointer<UInt8>
    /// Length of the line in bytes.
    private let end: Int
    /// Comparisons of a value with a node that are left.
    private var steps: Int
    /// The first failure: where and why.
    private var failure: (offset: Int, reason: String)?
    /// Parts of the path to the failure, innermost first; filled while the walk returns, so that a good event
    /// costs nothing for it.
    private var path: [String] = []

    /// A walk over the object at the beginning of a line.
    init(_ document: SchemaDocument, _ base: UnsafePointer<UInt8>, _ count: Int) {
        nodes = document.nodes
        self.base = base
        end = count
        steps = SchemaWalk.leastSteps + count * SchemaWalk.stepsPerByte
    }

    /// Comparisons allowed for each byte. A value has at least one byte, and a chain of references a few
    /// nodes.
    private static let stepsPerByte = 16
    /// Comparisons allowed for a short event.
    private static let leastSteps = 4_096

    /// Compares the event with the root; nil if the schema allows it.
    mutating func check() -> SchemaFailure? {
        guard value(nodes[0], at: 0) == nil, let failure else { return nil }
        return SchemaFailure(
            path: path.reversed().map { "/" + SchemaCompiler.escaped($0) }.joined(), reason: failure.reason,
            offset: failure.offset)
    }

    /// Notes a failure; always returns nil, so that callers can return its result.
    private mutating func fail(_ offset: Int, _ reason: @autoclosure () -> String) -> Int? {
        failure = (offset, reason())
        return nil
    }

    /// Compares the value that begins at an offset with a node.
    ///
    /// - Returns: the offset behind the value; nil after a failure.
    private mutating func value(_ node: SchemaNode, at start: Int) -> Int? {
        steps -= 1
        guard steps >= 0 else { return fail(start, "takes too many comparisons ($ref beside properties)") }
        if node.isNever { return fail(start, "is not allowed") }
        // Keywords beside `$ref` count too, so the walk continues with this node after the other one.
        if let reference = node.reference, value(nodes[reference], at: start) == nil { return nil }
        switch base[start] {
        case UInt8(ascii: "{"):
            guard node.types.contains(.object) else { return wrongType("an object", node, start) }
            guard let after = members(node, at: start) else { return nil }
            return other(node, start..<after)
        case UInt8(ascii: "["):
            guard node.types.contains(.array) else { return wrongType("a list", node, start) }
            guard let after = elements(node, at: start) else { return nil }
            return other(node, start..<after)
        case UInt8(ascii: "\""):
            guard node.types.contains(.string) else { return wrongType("a text", node, start) }
            let after = RawWalk.valueEnd(base, start, end)
            return node.scalars.map { text($0, start..<after) } ?? after
        case UInt8(ascii: "t"), UInt8(ascii: "f"):
            guard node.types.contains(.boolean) else { return wrongType("true or false", node, start) }
            return other(node, start..<RawWalk.valueEnd(base, start, end))
        case UInt8(ascii: "n"):
            guard node.types.contains(.null) else { return wrongType("null", node, start) }
            return other(node, start..<RawWalk.valueEnd(base, start, end))
        default:
            return number(node, start..<RawWalk.valueEnd(base, start, end))
        }
    }

    /// Fails with the expected types. A message names `integer` only if `number` is not allowed.
    @inline(never)
    private mutating func wrongType(_ found: String, _ node: SchemaNode, _ start: Int) -> Int? {
        let wanted = node.types.contains(.number) ? node.types.subtracting(.integer) : node.types
        return fail(start, "is \(found), must be \(wanted.text) (type)")
    }

    // MARK: Objects and lists

    /// Compares an object's members with a node, and checks that all required ones are there.
    private mutating func members(_ node: SchemaNode, at start: Int) -> Int? {
        guard let object = node.object else { return RawWalk.valueEnd(base, start, end) }
        var walk = RawWalk(base, from: start, to: end)
        var present: UInt64 = 0
        while let member = walk.nextName() {
            let known =
                member.isEscaped
                ? findEscaped(member.name, in: object.names) : find(member.name, in: object.names)
            let nodeIndex: Int
            if let known {
                present |= object.names[known].bit
                nodeIndex = object.names[known].node
            } else {
                nodeIndex = -1
            }
            let begin = member.value.lowerBound
            if nodeIndex >= 0 {
                guard let after = value(nodes[nodeIndex], at: begin) else {
                    path.append(known.map { String(decoding: object.names[$0].bytes, as: UTF8.self) } ?? "")
                    return nil
                }
                walk.goOn(at: after)
                continue
            }
            // Known only by `required`, or not at all: `additionalProperties` decides.
            switch object.others {
            case .allowed: walk.skipValue()
            case .denied:
                return fail(
                    member.name.lowerBound - 1,
                    "has a member that is not in the schema (additionalProperties)")
            case .node(let nodeIndex):
                guard let after = value(nodes[nodeIndex], at: begin) else {
                    path.append("(additional)")
                    return nil
                }
                walk.goOn(at: after)
            }
        }
        guard present == object.required else { return lacks(object, present, start) }
        return walk.objectEnd
    }

    /// Fails with the first required member that is absent.
    @inline(never)
    private mutating func lacks(_ object: SchemaNode.Members, _ present: UInt64, _ start: Int) -> Int? {
        let name = object.names.first { $0.bit & ~present != 0 }.map {
            String(decoding: $0.bytes, as: UTF8.self)
        }
        return fail(start, "lacks the member \(SchemaCompiler.escaped(name ?? "")) (required)")
    }

    /// Index of a name among those of a node, by binary search; nil if it is not named.
    private func find(_ name: Range<Int>, in names: [SchemaNode.Name]) -> Int? {
        let text = base + name.lowerBound
        var low = 0
        var high = names.count
        while low < high {
            let middle = (low + high) / 2
            let order = SchemaWalk.order(text, name.count, names[middle].bytes)
            if order == 0 { return middle }
            if order < 0 {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return nil
    }

    /// Order of two names: by length, then by bytes.
    @inline(__always)
    private static func order(_ text: UnsafePointer<UInt8>, _ count: Int, _ other: [UInt8]) -> Int {
        count == other.count ? Int(memcmp(text, other, count)) : count - other.count
    }

    /// Index of a name that is written with escapes, such as `\u0061`. Rare, so the names are searched one by
    /// one.
    @inline(never)
    private func findEscaped(_ name: Range<Int>, in names: [SchemaNode.Name]) -> Int? {
        let text = JSONString.decoded(UnsafeBufferPointer(start: base + name.lowerBound, count: name.count))
        return names.firstIndex { $0.bytes == text }
    }

    /// Compares a list's items with a node, and checks their number.
    private mutating func elements(_ node: SchemaNode, at start: Int) -> Int? {
        guard node.items != nil || !node.itemCounts.isEmpty else { return RawWalk.valueEnd(base, start, end) }
        var position = start + 1
        var count = 0
        while true {
            while position < end, base[position] <= 0x20 || base[position] == UInt8(ascii: ",") {
                position += 1
            }
            guard position < end, base[position] != UInt8(ascii: "]") else { break }
            if let items = node.items {
                guard let after = value(nodes[items], at: position) else {
                    path.append("\(count)")
                    return nil
                }
                position = after
            } else {
                position = RawWalk.valueEnd(base, position, end)
            }
            count += 1
        }
        if count < node.itemCounts.least {
            return fail(start, "has fewer than \(node.itemCounts.least) items (minItems)")
        }
        if let most = node.itemCounts.most, count > most {
            return fail(start, "has more than \(most) items (maxItems)")
        }
        return min(position + 1, end)
    }

    // MARK: Texts, numbers and the others

    /// Compares a text with the rules of a node. Only texts with a backslash are decoded, which costs an
    /// allocation.
    private mutating func text(_ rules: SchemaNode.Scalars, _ value: Range<Int>) -> Int? {
        let raw = UnsafeBufferPointer(start: base + value.lowerBound + 1, count: max(0, value.count - 2))
        guard memchr(base + value.lowerBound + 1, Int32(UInt8(ascii: "\\")), raw.count) != nil else {
            return text(rules, raw, value)
        }
        return JSONString.decoded(raw).withUnsafeBufferPointer { text(rules, $0, value) }
    }

    /// Compares the decoded bytes of a text.
    private mutating func text(
        _ rules: SchemaNode.Scalars, _ text: UnsafeBufferPointer<UInt8>, _ value: Range<Int>
    ) -> Int? {
        if let allowed = rules.allowed {
            let isOne = allowed.texts.contains { $0.count == text.count && SchemaWalk.equal($0, text) }
            guard isOne else { return notAllowed(allowed, value) }
        }
        // A character has one to four bytes, so most texts need no counting.
        if let most = rules.lengths.most, text.count > most, SchemaWalk.length(text) > most {
            return fail(value.lowerBound, "is longer than \(most) characters (maxLength)")
        }
        let least = rules.lengths.least
        if least > 0, text.count < least || text.count < 4 * least && SchemaWalk.length(text) < least {
            return fail(value.lowerBound, "is shorter than \(least) characters (minLength)")
        }
        if let pattern = rules.pattern, !pattern.finds(in: text) {
            return fail(value.lowerBound, "does not match the expression (pattern)")
        }
        return value.upperBound
    }

    /// Whether two texts have the same bytes; the caller has compared their lengths.
    private static func equal(_ text: [UInt8], _ other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = other.baseAddress else { return text.isEmpty }
        return memcmp(text, start, other.count) == 0
    }

    /// Number of characters, which are code points in JSON Schema (Validation, section 6.3.1): all bytes but
    /// UTF-8 continuation bytes.
    private static func length(_ text: UnsafeBufferPointer<UInt8>) -> Int {
        text.reduce(0) { $0 + ($1 & 0xC0 == 0x80 ? 0 : 1) }
    }

    /// Compares a number with a node. The number is converted only if its value matters.
    private mutating func number(_ node: SchemaNode, _ value: Range<Int>) -> Int? {
        let needsValue = node.scalars != nil || node.types.isDisjoint(with: .number)
        guard needsValue else { return value.upperBound }
        let number = SchemaNumber(base, value)
        guard node.types.contains(.number) || node.types.contains(.integer) && number.isWhole else {
            return wrongType(number.isWhole ? "a number" : "a number with a fraction", node, value.lowerBound)
        }
        if let allowed = node.scalars?.allowed, !allowed.numbers.contains(number) {
            return notAllowed(allowed, value)
        }
        if let problem = node.scalars?.bounds?.problem(of: number) { return fail(value.lowerBound, problem) }
        return value.upperBound
    }

    /// Compares objects, lists, true, false and null with `enum` or `const`, the only keywords that need the
    /// value as a whole.
    private mutating func other(_ node: SchemaNode, _ value: Range<Int>) -> Int? {
        guard let allowed = node.scalars?.allowed else { return value.upperBound }
        let bytes = Array(UnsafeBufferPointer(start: base + value.lowerBound, count: value.count))
        guard let parsed = try? JSONValue(parsing: bytes),
            allowed.others.contains(AllowedValues.normalized(parsed))
        else { return notAllowed(allowed, value) }
        return value.upperBound
    }

    /// Fails because a value is not among those of `enum` or `const`.
    private mutating func notAllowed(_ allowed: AllowedValues, _ value: Range<Int>) -> Int? {
        let what =
            allowed.keyword == "const" ? "is not the value of const" : "is not one of the values of enum"
        return fail(value.lowerBound, what)
    }
}

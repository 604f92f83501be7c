internal import CRE2
internal import Glibc
internal import Model

/// Kinds of JSON values, as the keyword `type` names them.
struct SchemaTypes: OptionSet, Sendable {
    let rawValue: UInt8

    static let object = SchemaTypes(rawValue: 1)
    static let array = SchemaTypes(rawValue: 2)
    static let string = SchemaTypes(rawValue: 4)
    static let number = SchemaTypes(rawValue: 8)
    /// Numbers without a fraction, 1.0 included. `number` includes them.
    static let integer = SchemaTypes(rawValue: 16)
    static let boolean = SchemaTypes(rawValue: 32)
    static let null = SchemaTypes(rawValue: 64)
    static let all = SchemaTypes(rawValue: 127)

    /// The names of `type`, in the order of messages.
    static let names: [(name: String, type: SchemaTypes)] = [
        ("object", .object), ("array", .array), ("string", .string), ("number", .number),
        ("integer", .integer),
        ("boolean", .boolean), ("null", .null),
    ]

    /// The names of these types for a message, such as "object or null".
    var text: String {
        SchemaTypes.names.filter { contains($0.type) }.map(\.name).joined(separator: " or ")
    }
}

/// A number of a schema or an event: exact if it is whole and fits in 64 bits, otherwise a double.
///
/// A whole double is stored as an integer, so that 1.0 equals 1, and large ids are not rounded.
enum SchemaNumber: Sendable, Equatable {
    case integer(Int)
    case double(Double)

    /// The number of a JSON value; nil if the value is not a number.
    init?(_ value: JSONValue) {
        switch value {
        case .integer(let number): self = .integer(number)
        case .double(let number): self = SchemaNumber(double: number)
        default: return nil
        }
    }

    /// The number written at a range of an event.
    init(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) {
        var index = range.lowerBound
        let isNegative = base[index] == UInt8(ascii: "-")
        if isNegative {
            index += 1
        }
        var value = 0
        // 18 digits cannot overflow 64 bits; longer numbers take the slow path.
        guard range.upperBound - index <= 18 else {
            self = SchemaNumber(double: strtod(base, range))
            return
        }
        while index < range.upperBound, base[index] &- 0x30 <= 9 {
            value = value &* 10 &+ Int(base[index] &- 0x30)
            index += 1
        }
        self =
            index == range.upperBound
            ? .integer(isNegative ? -value : value) : SchemaNumber(double: strtod(base, range))
    }

    /// A double, as an integer if it is whole and fits.
    private init(double number: Double) {
        // A whole double is compared as the whole number that it is.
        self = Int(exactly: number).map { .integer($0) } ?? .double(number)
    }

    /// Whether the number has no fraction; also true for doubles too large for 64 bits.
    var isWhole: Bool {
        switch self {
        case .integer: true
        case .double(let number): number.isFinite && number.rounded() == number
        }
    }

    /// Compares integers exactly, and other numbers as doubles.
    static func < (left: SchemaNumber, right: SchemaNumber) -> Bool {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left < right
        default: left.double < right.double
        }
    }

    /// The nearest double.
    private var double: Double {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        }
    }
}

extension SchemaNumber: CustomStringConvertible {
    var description: String {
        switch self {
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        }
    }
}

/// The double written at a range. `strtod` needs a zero behind the text, so the text is copied.
private func strtod(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> Double {
    // The copy is at most 400 bytes; a longer number (it may fill a line) is parsed from a string instead.
    var text = [CChar](repeating: 0, count: min(range.count, 400) + 1)
    for index in 0..<text.count - 1 { text[index] = CChar(bitPattern: base[range.lowerBound + index]) }
    guard range.count > 400 else { return Glibc.strtod(text, nil) }
    return Double(
        String(
            decoding: UnsafeBufferPointer(start: base + range.lowerBound, count: range.count), as: UTF8.self))
        ?? .infinity
}

/// Bounds of a number: `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`; nil for keywords that
/// are absent.
struct NumberBounds: Sendable {
    var minimum: SchemaNumber?
    var maximum: SchemaNumber?
    var exclusiveMinimum: SchemaNumber?
    var exclusiveMaximum: SchemaNumber?

    var isEmpty: Bool {
        minimum == nil && maximum == nil && exclusiveMinimum == nil && exclusiveMaximum == nil
    }

    /// The first bound that a number violates, as a reason; nil if it violates no bound.
    func problem(of number: SchemaNumber) -> String? {
        if let minimum, number < minimum { return "is below minimum \(minimum)" }
        if let maximum, maximum < number { return "is above maximum \(maximum)" }
        if let bound = exclusiveMinimum, !(bound < number) { return "is not above exclusiveMinimum \(bound)" }
        if let bound = exclusiveMaximum, !(number < bound) { return "is not below exclusiveMaximum \(bound)" }
        return nil
    }
}

/// The values of `enum` or `const`, by kind, so that an event's value is compared with its own kind only.
struct AllowedValues: Sendable {
    /// `enum` or `const`, for messages.
    let keyword: String
    /// Texts in UTF-8, compared byte by byte.
    var texts: [[UInt8]] = []
    var numbers: [SchemaNumber] = []
    /// Objects, lists, true, false and null, in normalized form.
    var others: [JSONValue] = []

    /// Sorts values by kind.
    init(_ values: [JSONValue], keyword: String) {
        self.keyword = keyword
        for value in values {
            if let text = value.string {
                texts.append(Array(text.utf8))
            } else if let number = SchemaNumber(value) {
                numbers.append(number)
            } else {
                others.append(AllowedValues.normalized(value))
            }
        }
    }

    /// A form in which equal values are identical: members sorted by name, whole numbers as integers. Of
    /// members with the same name the last one counts.
    static func normalized(_ value: JSONValue) -> JSONValue {
        switch value {
        case .double(let number): Int(exactly: number).map { .integer($0) } ?? value
        case .array(let elements): .array(elements.map { normalized($0) })
        case .object(let members):
            .object(
                Dictionary(members.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 }).sorted {
                    $0.key < $1.key
                }
                .map { .init($0.key, normalized($0.value)) })
        default: value
        }
    }
}

/// A compiled expression of `pattern`.
///
/// Unchecked, because matching changes nothing in it that can be observed from another thread.
final class SchemaPattern: @unchecked Sendable {
    /// Owned; freed by `deinit`.
    private let compiled: OpaquePointer

    /// Most memory of one expression and its automata, in bytes. An expression that needs more is refused.
    private static let memory: Int64 = 256 << 10

    /// Compiles an expression in RE2's syntax; it matches anywhere in a text, as the standard says.
    ///
    /// - Throws: `SchemaError` with RE2's reason.
    init(_ text: String, at pointer: String) throws(SchemaError) {
        var message = [CChar](repeating: 0, count: 256)
        guard
            let made = cre2_compile(
                text, text.utf8.count, false, SchemaPattern.memory, &message, message.count)
        else {
            let reason = String(
                decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw SchemaError(at: pointer, "RE2 cannot use the expression: \(reason)")
        }
        compiled = made
    }

    deinit { cre2_free(compiled) }

    /// Whether the expression matches somewhere in a text. Takes time linear in the text's length.
    func finds(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = text.baseAddress else { return cre2_finds(compiled, "", 0) }
        return start.withMemoryRebound(to: CChar.self, capacity: text.count) {
            cre2_finds(compiled, $0, text.count)
        }
    }
}

/// What a schema says of one value. Compact for the walk: parts that few schemas use are behind a reference.
final class SchemaNode: Sendable {
    /// A member named by `properties` or `required`.
    struct Name: Sendable {
        /// The name in UTF-8.
        let bytes: [UInt8]
        /// Index of the member's node; -1 if only `required` names it.
        let node: Int
        /// The member's bit in `Members.required`; 0 if it may be absent.
        let bit: UInt64
    }

    /// What holds for members that `properties` does not name (`additionalProperties`).
    enum Others: Sendable, Equatable {
        case allowed, denied
        case node(Int)
    }

    /// What the compiler collects of a schema; a node is made of it when it is complete.
    struct Content {
        var types = SchemaTypes.all
        /// Whether the schema is `false`, which allows nothing.
        var isNever = false
        /// Index of the node of `$ref`.
        var reference: Int?
        /// Named members, sorted by length and then by bytes, for the walk's binary search.
        var names: [Name] = []
        var others = Others.allowed
        /// Index of the node of `items`.
        var items: Int?
        var allowed: AllowedValues?
        var bounds = NumberBounds()
        var lengths = Lengths()
        var itemCounts = Lengths()
        var pattern: SchemaPattern?
    }

    /// Lengths of a text or numbers of items; `most` is nil without an upper bound.
    struct Lengths: Sendable, Equatable {
        var least = 0
        var most: Int?

        var isEmpty: Bool { least == 0 && most == nil }
    }

    let types: SchemaTypes
    let isNever: Bool
    /// Index of the node that the value must match too.
    let reference: Int?
    /// Conditions on members; nil without any, so that objects are skipped at once.
    let object: Members?
    /// Index of the node for all items of a list.
    let items: Int?
    /// Conditions on texts, numbers and single values; nil without any.
    let scalars: Scalars?
    /// Bounds of the number of items.
    let itemCounts: Lengths

    /// What a schema says of an object's members.
    struct Members: Sendable {
        let names: [Name]
        let others: Others
        /// One bit for each required member; a walk sets the bits it meets and compares once at the end.
        let required: UInt64
    }

    /// What a schema says of texts and numbers. A class, since most nodes have none and a reference keeps
    /// them small.
    final class Scalars: Sendable {
        let allowed: AllowedValues?
        let bounds: NumberBounds?
        let lengths: Lengths
        let pattern: SchemaPattern?

        init(_ content: Content) {
            allowed = content.allowed
            bounds = content.bounds.isEmpty ? nil : content.bounds
            lengths = content.lengths
            pattern = content.pattern
        }
    }

    init(_ content: Content) {
        types = content.types
        isNever = content.isNever
        reference = content.reference
        let required = content.names.reduce(UInt64(0)) { $0 | $1.bit }
        object =
            content.names.isEmpty && content.others == .allowed
            ? nil : Members(names: content.names, others: content.others, required: required)
        items = content.items
        itemCounts = content.itemCounts
        let hasScalars =
            content.allowed != nil || !content.bounds.isEmpty || !content.lengths.isEmpty
            || content.pattern != nil
        scalars = hasScalars ? Scalars(content) : nil
    }
}

/// A compiled document: its nodes, the root first. Nodes refer to each other by index, so that references
/// back to an enclosing schema make no reference cycle.
final class SchemaDocument: Sendable {
    let nodes: [SchemaNode]

    init(_ nodes: [SchemaNode]) { self.nodes = nodes }
}

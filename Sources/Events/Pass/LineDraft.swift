internal import EventLoops
internal import Glibc

/// A change of the line: bytes `from` up to `to` of the line are left out, and those of `inserted` in the
/// draft's scratch are written in their place.
struct Edit {
    let from: Int
    let to: Int
    var inserted = 0..<0
}

/// How the line that was read last will be written: what is removed, replaced and added. Cleared by
/// `reset` for each line.
struct LineDraft: ~Copyable {
    /// Members that `write` adds to the line.
    var wanted: Additions = []
    /// Whether the line was judged as a record. If so, members with our names are its data.
    var isRecord = false
    /// Whether the event's properties are written without those that have the address's name.
    var losesAddressProperty = false
    /// Name of the agent's id if the record has an `id` of its own; nil: the agent's id is called `id`.
    var otherIDName: Tail.OtherIDName?
    /// The event's or record's name. Its bytes are in the line, in `nameText` or in the app's state.
    var name = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
    /// JSON text of members that go before the other additions, without the comma before the first one. At
    /// most `frontBytes` beside the name and the pod: `maxAddition` counts on it.
    private(set) var front = LineBuffer(capacity: 64)
    /// Replacements and removals; unordered until `copyEdited` sorts them.
    private(set) var edits: [Edit] = []
    /// Bytes that `edits` insert.
    private var scratch: [UInt8] = []
    /// Storage of `name` if the name is not in the block byte for byte: it had escapes, was cut, or was
    /// missing.
    private var nameText = LineBuffer(capacity: 64)

    /// Size of `front` between lines: a pod's labels and a long name fit, and one huge name does not stay.
    private static let keptFront = 4096

    /// Most bytes by which the line grows, beside the tail.
    @inline(__always) var added: Int { scratch.count + front.count }

    /// Forgets what was noted of the line before. `wanted`, `isRecord` and `name` are set by each judgement.
    @inline(__always)
    mutating func reset() {
        if !edits.isEmpty || !scratch.isEmpty {
            edits.removeAll(keepingCapacity: true)
            scratch.removeAll(keepingCapacity: true)
        }
        front.removeAll(keepingCapacity: LineDraft.keptFront)
        losesAddressProperty = false
    }

    // MARK: Notes

    /// Takes a member out, with the comma after it. If it is the last member, the comma before it is left to
    /// `copyEdited`.
    mutating func remove(_ member: Member, of line: UnsafePointer<UInt8>) {
        var to = member.end
        while line[to] <= .blank { to += 1 }
        if line[to] == .comma {
            to += 1
        }
        edits.append(Edit(from: member.key, to: to))
    }

    /// Keeps a usable member instead of adding it; takes out any other.
    ///
    /// - Returns: false if the member had an unusable value, so that the caller counts it. `null` is not
    ///   counted. (A key path to the counter as a parameter would be built for each event.)
    @inline(__always)
    mutating func keep(
        _ member: Member, as addition: Additions, if isUsable: Bool, _ line: UnsafePointer<UInt8>
    ) -> Bool {
        if isUsable {
            wanted.remove(addition)
            return true
        }
        remove(member, of: line)
        return member.isNull(in: line)
    }

    /// Takes out bytes of a text.
    mutating func cut(_ range: Range<Int>) {
        edits.append(Edit(from: range.lowerBound, to: range.upperBound))
    }

    /// Writes other bytes instead of a range of the line.
    mutating func replace(_ range: Range<Int>, with bytes: [UInt8]) {
        let start = scratch.count
        scratch += bytes
        edits.append(Edit(from: range.lowerBound, to: range.upperBound, inserted: start..<scratch.count))
    }

    /// Adds a member to `front`; `value` appends its JSON text.
    @inline(__always)
    mutating func addFront(_ name: StaticString, _ value: (inout LineBuffer) -> Void) {
        if !front.isEmpty {
            front.append(.comma)
        }
        front.append(.quote)
        front.append(name)
        front.append(.quote)
        front.append(.colon)
        value(&front)
    }

    /// Adds a member to `front` that is JSON text with its name.
    mutating func addFront(member: [UInt8]) {
        if !front.isEmpty {
            front.append(.comma)
        }
        front.append(member)
    }

    /// Copies a name to memory of the draft, where it is valid until the next line.
    mutating func keptName(_ name: ArraySlice<UInt8>) -> UnsafeBufferPointer<UInt8> {
        name.withUnsafeBytes { keptName($0) }
    }

    /// Copies a name to memory of the draft, where it is valid until the next line.
    mutating func keptName(_ name: UnsafeRawBufferPointer) -> UnsafeBufferPointer<UInt8> {
        nameText.removeAll()
        nameText.append(name)
        return UnsafeBufferPointer(start: nameText.start, count: nameText.count)
    }

    // MARK: Writing

    /// Writes the line up to its closing brace, and `front`. Returns the address after it. Without edits it
    /// is one copy.
    @inline(__always)
    mutating func write(
        _ scanner: borrowing JSONScanner, to start: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        var out = start
        if edits.isEmpty, !scanner.hasLineBreaks {
            let length = scanner.close - scanner.open
            memcpy(out, scanner.base + scanner.open, length)
            out += length
        } else {
            out = copyEdited(scanner, to: out)
        }
        return front.isEmpty ? out : writeFront(out)
    }

    /// Writes the line up to its closing brace, with the edits applied and without line breaks between
    /// tokens. Returns the address after it.
    ///
    /// Line breaks can only be between tokens: the scanner refuses them inside a string.
    @inline(never)
    private mutating func copyEdited(
        _ scanner: borrowing JSONScanner, to start: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        edits.sort { $0.from < $1.from }
        let base = scanner.base
        let hasBreaks = scanner.hasLineBreaks
        var out = start
        var position = scanner.open
        for edit in edits {
            out = LineDraft.copy(base, position, edit.from, hasBreaks, to: out)
            for index in edit.inserted where scratch[index] != .lineFeed && scratch[index] != 0x0D {
                out[0] = scratch[index]
                out += 1
            }
            position = edit.to
        }
        out = LineDraft.copy(base, position, scanner.close, hasBreaks, to: out)
        // If the last member was removed, the comma before it remains. Additions bring their own comma, so
        // this one would make the object invalid.
        while out > start, out[-1] <= .blank { out -= 1 }
        if !edits.isEmpty, out > start, out[-1] == .comma {
            out -= 1
        }
        return out
    }

    /// Copies bytes of the line without its line breaks and carriage returns.
    private static func copy(
        _ base: UnsafePointer<UInt8>, _ from: Int, _ to: Int, _ hasBreaks: Bool,
        to start: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        guard to > from else { return start }
        guard hasBreaks else {
            memcpy(start, base + from, to - from)
            return start + (to - from)
        }
        var out = start
        for index in from..<to where base[index] != .lineFeed && base[index] != 0x0D {
            out[0] = base[index]
            out += 1
        }
        return out
    }

    /// Writes the members in `front`, after a comma unless they are the first of the object.
    @inline(never)
    private mutating func writeFront(_ start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        var out = start
        while out[-1] <= .blank { out -= 1 }
        if out[-1] != .openBrace {
            out[0] = .comma
            out += 1
        }
        memcpy(out, front.start, front.count)
        return out + front.count
    }
}

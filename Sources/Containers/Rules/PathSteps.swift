internal import Glibc

/// The steps of a path: names, any name (`*`), any number of levels (`**`). The progress of a match is a set
/// of bits: bit n means that the names so far match the first n steps. Several bits can be set at once,
/// because `**` matches any number of names.
///
/// A path with dots takes each dot in a member's name for a level, too: `a.b.c` leads to `c` in `a.b`, to
/// `b.c` in `a`, to `a.b.c`, and to `a.b.c.d`, which is below it. Its `*` is then one or more parts of one
/// name.
struct PathSteps: Hashable {
    /// Stands for any one name. 0xFE is not a byte of UTF-8.
    static let anyName: [UInt8] = [0xFE]
    /// Stands for any number of names, also none.
    static let anyDepth: [UInt8] = [0xFD]
    /// Behind a name: all names that begin with it match. Not a byte of UTF-8.
    static let anyEnd: UInt8 = 0xFF
    /// The separator of parts in names.
    static let dot = UInt8(ascii: ".")

    /// The steps.
    let names: [[UInt8]]
    /// Whether dots in members' names count as levels.
    let isDotted: Bool
    /// Indexes of the `**` steps, a bit each.
    private let depths: UInt64

    /// A path of names.
    init(_ names: [[UInt8]], isDotted: Bool = false) {
        let parts =
            isDotted
            ? names.flatMap {
                $0.split(separator: PathSteps.dot, omittingEmptySubsequences: false).map { Array($0) }
            }
            : names
        // Renames may make a path longer than there are bits: then its last name is hidden wherever it is.
        let steps = parts.count < 64 ? parts : [PathSteps.anyDepth, parts[parts.count - 1]]
        self.names = steps
        self.isDotted = isDotted
        depths = steps.indices.reduce(0) { $0 | (steps[$1] == PathSteps.anyDepth ? 1 << UInt64($1) : 0) }
    }

    /// A path of a document, in which `*` and `**` are wildcards.
    init(_ path: MemberPath) {
        let names = path.names.map {
            $0 == "*" ? PathSteps.anyName : $0 == "**" ? PathSteps.anyDepth : $0.bytes
        }
        self.init(names, isDotted: path.isDotted)
    }

    /// A path with other names, of the same kind.
    func with(_ names: [[UInt8]]) -> PathSteps { PathSteps(names, isDotted: isDotted) }

    /// The progress before the first name.
    var start: UInt64 { open(1) }

    /// Adds the steps that follow a `**`, which may match no name at all.
    private func open(_ states: UInt64) -> UInt64 {
        var states = states
        while case let further = (states & depths) << 1, further & ~states != 0 { states |= further }
        return states
    }

    /// Whether the path has been followed to its end.
    func isAtEnd(_ states: UInt64) -> Bool { states >> UInt64(names.count) & 1 == 1 }

    /// The progress after one more name. A complete match stays complete, because the path means everything
    /// below its end, too. Takes time in proportion to the name's length.
    func next(_ states: UInt64, _ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var states = states
        // Steps that may match further parts of this name.
        var wide: UInt64 = 0
        var start = 0
        repeat {
            var next = states & 1 << UInt64(names.count)
            var left = states ^ next
            while left != 0 {
                let index = left.trailingZeroBitCount
                left &= left - 1
                let step = names[index]
                switch step.last ?? 0 {
                case 0xFD: next |= 1 << UInt64(index)
                case 0xFE: wide |= 1 << UInt64(index)
                case PathSteps.anyEnd:
                    if isPart(step, step.count - 1, of: name, at: start) {
                        wide |= 1 << UInt64(index)
                    }
                default:
                    let end = start + step.count
                    let isWhole =
                        end == name.count || isDotted && end < name.count && name[end] == PathSteps.dot
                    if isWhole, isPart(step, step.count, of: name, at: start) {
                        next |= 1 << UInt64(index + 1)
                    }
                }
            }
            states = open(next | wide << 1)
            while isDotted, states != 0, start < name.count, name[start] != PathSteps.dot { start += 1 }
            start += 1
        } while isDotted && states != 0 && start <= name.count
        return states
    }

    /// Whether a step is a part of a name.
    private func isPart(_ step: [UInt8], _ count: Int, of name: UnsafeBufferPointer<UInt8>, at start: Int)
        -> Bool
    {
        guard let base = name.baseAddress, start + count <= name.count else { return count == 0 }
        return memcmp(base + start, step, count) == 0
    }

    /// The progress after one more name.
    func next(_ states: UInt64, _ name: [UInt8]) -> UInt64 {
        name.withUnsafeBufferPointer { next(states, $0) }
    }

    /// The rest of the path after these names, for each way in which the path matches them.
    func rests(after prefix: [[UInt8]]) -> [PathSteps] {
        let states = prefix.reduce(start) { next($0, $1) }
        return (0...names.count).filter { states >> UInt64($0) & 1 == 1 }.map { with(Array(names[$0...])) }
    }

    /// Whether the path leads to these names, or to a member that contains them.
    func covers(_ other: [[UInt8]]) -> Bool { isAtEnd(other.reduce(start) { next($0, $1) }) }

    /// Whether the path leads to these names, to a member that contains them, or to one inside of them.
    func meets(_ other: [[UInt8]]) -> Bool { other.reduce(start) { next($0, $1) } != 0 }

    /// Whether a name of a path may be that of an event's property, which limits may cut.
    static func mayBeProperty(_ index: Int, of names: [[UInt8]]) -> Bool {
        guard index > 0, names[index].last ?? 0 < 0xFD else { return false }
        return index == 1 && PathSteps([names[0]]).covers(["properties".bytes])
            || names[..<index].contains(anyDepth)
    }
}

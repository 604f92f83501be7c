internal import EventLoops

/// A number of bytes: never negative, and sums saturate. A file's owner controls its size, up to 2^63-1
/// for a file without content, so the sizes of two files can overflow 64 bits.
public struct ByteCount: Sendable, Hashable, Comparable, ExpressibleByIntegerLiteral {
    /// The number, from 0.
    public let value: Int64

    /// A number of bytes; a negative number becomes 0.
    public init(_ value: Int64) { self.value = max(0, value) }

    /// A number of bytes as a literal.
    public init(integerLiteral value: Int64) { self.init(value) }

    /// Whether the left count is smaller.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.value < right.value }
    /// The sum, at most the largest count.
    public static func + (left: ByteCount, right: ByteCount) -> ByteCount {
        ByteCount(left.value.addingSaturating(right.value))
    }
    /// The difference, at least 0.
    public static func - (left: ByteCount, right: ByteCount) -> ByteCount {
        ByteCount(left.value - right.value)
    }
    /// Adds, up to the largest count.
    public static func += (left: inout ByteCount, right: ByteCount) { left = left + right }
    /// Subtracts, down to 0.
    public static func -= (left: inout ByteCount, right: ByteCount) { left = left - right }
}

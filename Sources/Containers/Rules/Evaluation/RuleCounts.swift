/// What the rules have done so far; each figure is a counter that grows.
public struct RuleCounts: Sendable, Equatable {
    /// Tags fired, by container.
    public var fired: [String: Int] = [:]
    /// Events that tags made too large; they are not sent.
    public var tooLarge = 0
    /// Pushes that changed nothing, because the data layer would have grown too large.
    public var refusedPushes = 0
    /// Names that a tag would have set to something that is no name.
    public var badNames = 0

    /// Events for which a function was wanted that may not be called.
    public var deniedCalls = 0

    /// Events that were to be hashed without a key: a text took the place of their values.
    public var missingKeys = 0

    package init() {}
}

/// What the rules have done so far; each figure is a counter that never decreases.
public struct RuleCounts: Sendable, Equatable {
    package var fired: [String: Int] = [:]
    /// What tags could not do as they say.
    public var problems: [RuleProblem: Int] = [:]

    package init() {}
}

/// Why a tag could not be applied. Closed, because each is a metric label.
public enum RuleProblem: String, Sendable, CaseIterable {
    /// An event that tags made too large; it is not sent.
    case tooLarge = "event_too_large"
    /// An event for which a function was wanted that may not be called.
    case deniedCall = "function_not_allowed"
    /// An event that was to be hashed without a key: a text took the place of its values.
    case missingKey = "hash_key_missing"
    /// A name that a tag would have set to something that is no name.
    case badName = "not_a_name"
    /// An event that shared a throttle's count with others of its app, because there were too many keys.
    case crowdedThrottle = "throttle_full"
    /// A push that changed nothing, because the data layer would have grown too large, or another app's that was given up for it.
    case refusedPush = "data_layer_full"
    /// An event that a tag sent to destinations that are not configured: it went where the configuration says.
    case unknownDestination = "unknown_destination"
}

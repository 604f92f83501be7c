/// What rules have done; each figure only grows.
public struct RuleCounts: Sendable, Equatable {
    /// Tags that fired, by container.
    package var fired: [String: Int] = [:]
    /// Events on which rules of the configuration acted, by rule.
    package var byRule: [String: Int] = [:]
    /// What tags could not do, by reason.
    public var problems: [RuleProblem: Int] = [:]

    /// Nothing done yet.
    package init() {}
}

/// Why a tag could not do its work. Closed, because each is the label of a metric.
public enum RuleProblem: String, Sendable, CaseIterable {
    /// Tags made an event too large; it is not sent.
    case tooLarge = "event_too_large"
    /// An event needed a function that may not be called.
    case deniedCall = "function_not_allowed"
    /// A tag called a function of the event's app, and no client listened for it, or all that did were too
    /// slow.
    case unheardCall = "app_not_listening"
    /// A hash tag had no key, so a constant text replaced the values.
    case missingKey = "hash_key_missing"
    /// A tag would have set an event's name to something that cannot be a name.
    case badName = "not_a_name"
    /// An event shared a throttle's count with others of its app, because there are too many keys.
    case crowdedThrottle = "throttle_full"
    /// A push changed nothing because the data layer would have grown too large, or another app's layer was
    /// given up for it.
    case refusedPush = "data_layer_full"
    /// A tag sent an event to destinations that are not configured; it went to the destinations of the
    /// configuration.
    case unknownDestination = "unknown_destination"
}

/// The names of the deadlines that concern some events because of the app they come from.
///
/// Deadlines that concern every app are not listed. Fixed when the events are accepted, like their
/// destinations.
public struct DeadlineNames: Sendable, Hashable {
    /// The names in alphabetical order, separated by commas, as the queue stores them.
    public let text: String

    package init(text: String) { self.text = text }

    /// The given names; nil if there are no names.
    package init?(_ names: some Sequence<String>) {
        let sorted = Set(names).sorted()
        guard !sorted.isEmpty else { return nil }
        text = sorted.joined(separator: ",")
    }

    /// Whether a deadline is among them.
    public func contains(_ name: String) -> Bool {
        text.split(separator: ",").contains { $0 == name }
    }
}

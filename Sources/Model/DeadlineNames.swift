/// The deadlines that concern some events because of the app they come from, by name.
///
/// Deadlines that concern every app are not named. Fixed when the events are accepted, like their destinations.
public struct DeadlineNames: Sendable, Hashable {
    /// The names in alphabetical order, with commas between: as the queue stores them.
    public let text: String

    package init(text: String) { self.text = text }

    package init?(_ names: some Sequence<String>) {
        let sorted = Set(names).sorted()
        guard !sorted.isEmpty else { return nil }
        text = sorted.joined(separator: ",")
    }

    /// Whether the deadline of that name is one of them.
    public func contains(_ name: String) -> Bool {
        text.split(separator: ",").contains { $0 == name }
    }
}

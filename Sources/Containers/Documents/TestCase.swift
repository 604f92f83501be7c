public import Model

/// A test case of a document: an event and the expected result. `container test` runs it.
public struct TestCase: Sendable, Equatable {
    /// What it shows; unique in its document.
    public let name: String
    /// The app whose event it is. Default `default`.
    public let app: String
    /// What was pushed into the app's data layer before, one after the other.
    public let dataLayer: [JSONValue]
    /// What functions answer, by name; the others answer null.
    public private(set) var functions: [String: JSONValue] = [:]
    /// The event as an app would write it; nil for a case about values only.
    public let event: JSONValue?
    /// What must become of it; what is nil or empty is not looked at.
    public let expected: Expectation

    /// What a case expects.
    public struct Expectation: Sendable, Equatable {
        /// The tags that fire, in their order.
        public var tags: [String]?
        /// Members that the event must have afterwards, with these values; objects may have more.
        public var event: JSONValue?
        /// Members that the event must not have afterwards.
        public var absent: [MemberPath] = []
        package var discardedBy: String?
        package var isKept: Bool?
        package var priority: Priority?
        /// Where it goes, where a tag says so.
        public var destinations: [String]?
        /// Values as `container get` gives them.
        public var values: [JSONValue.Member] = []
    }
}

extension TestCase {
    init(reading node: DocumentNode) throws(ContainerError) {
        let members = try node.members(
            known: ["name", "description", "app", "data_layer", "functions", "event", "expect"])
        name = try members.required("name").name()
        app = try members.optional("app")?.name() ?? "default"
        dataLayer =
            try members.optional("data_layer")?.elements(limit: DocumentLimits.list)
            .map { node throws(ContainerError) in try node.object() } ?? []
        for (name, node) in try members.optional("functions")?.members(limit: DocumentLimits.list).all ?? [] {
            functions[name] = try node.constant()
        }
        event = try members.optional("event")?.object()
        expected = try Expectation(reading: try members.required("expect"))
        guard event != nil || expected == Expectation(values: expected.values) else {
            throw node.error("needs an \"event\", or expects nothing but values")
        }
    }
}

extension TestCase.Expectation {
    init(reading node: DocumentNode) throws(ContainerError) {
        let members = try node.members(
            known: ["tags", "event", "absent", "discarded_by", "kept", "priority", "destinations", "values"])
        tags = try members.optional("tags")?.names()
        event = try members.optional("event")?.object()
        absent = try members.optional("absent")?.memberPaths() ?? []
        discardedBy = try members.optional("discarded_by")?.name()
        isKept = try members.optional("kept")?.bool()
        priority = try members.optional("priority")?.priority()
        destinations = try members.optional("destinations")?.names()
        for (name, node) in try members.optional("values")?.members(limit: DocumentLimits.values).all ?? [] {
            values.append(JSONValue.Member(name, try node.constant()))
        }
    }
}

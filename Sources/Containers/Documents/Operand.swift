public import Model

/// A value in a document: a literal, or that of a macro.
public enum Operand: Sendable, Hashable {
    case constant(JSONValue)
    /// What the macro of that name gives: `{"macro": "NAME"}`.
    case macro(String)
}

/// Where a member is in an event, from its top: `["properties", "Category"]`.
///
/// Written `"properties.Category"`, or as a list if a name contains a dot. Only members of objects can be named.
public struct MemberPath: Sendable, Hashable, CustomStringConvertible {
    /// The names, outermost first; not empty.
    public let names: [String]

    /// A path of these names; there is at least one.
    public init(_ names: [String]) { self.names = names }

    /// The path with dots between its names.
    public var description: String { names.joined(separator: ".") }
}

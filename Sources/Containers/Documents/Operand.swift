public import Model

/// A value in a document: a literal, or that of a macro.
public enum Operand: Sendable, Hashable {
    case constant(JSONValue)
    /// What the macro of that name gives: `{"macro": "NAME"}`.
    case macro(String)
}

/// Where a member is in an event, from its top: `["properties", "Category"]`.
///
/// Written `"properties.Category"`, or as a list if a name contains a dot. Only members of objects can be named. What tags
/// hide by a path with dots they hide under names that contain the dots, too.
public struct MemberPath: Sendable, Hashable, CustomStringConvertible {
    /// The names, outermost first; not empty.
    public let names: [String]
    /// Whether it is written with dots, not as a list.
    var isDotted = false

    /// The path with dots between its names.
    public var description: String { names.joined(separator: ".") }
}

public import Model

/// A value in a document: a constant, or the value of a macro.
public enum Operand: Sendable, Hashable {
    /// The value itself.
    case constant(JSONValue)
    /// The value of the macro of that name: `{"macro": "NAME"}`.
    case macro(String)
}

/// Path of a member in an event, from its top: `["properties", "Category"]`.
///
/// It is written `"properties.Category"`, or as a list if a name contains a dot. It names only members of
/// objects, no elements of lists. Tags that hide a member by a path with dots also hide names that contain
/// the dots.
public struct MemberPath: Sendable, Hashable, CustomStringConvertible {
    /// Names, outermost first; not empty.
    public let names: [String]
    /// Whether the path was written with dots, not as a list.
    var isDotted = false

    /// The names with dots between them.
    public var description: String { names.joined(separator: ".") }
}

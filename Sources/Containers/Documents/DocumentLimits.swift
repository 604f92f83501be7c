/// What a document may contain at most. Fixed, not configurable, so that a document that is valid on one
/// machine is valid on all. Together they bound the memory and the time of an event.
public enum DocumentLimits {
    /// Bytes of the whole text, 1 MiB.
    public static let bytes = 1 << 20
    /// Levels to which constants may be nested.
    public static let depth = 32
    /// Bytes of a name in UTF-8.
    public static let nameBytes = 64
    /// Values, counted with those of all collections.
    public static let values = 1000
    /// Macros, counted with those that stand for paths in expressions.
    package static let macros = 500
    /// Macros that may depend on each other in a chain, as a function's parameter that is another function's
    /// result. Evaluation is recursive, so this bounds the stack.
    public static let macroChain = 16
    /// Rules by name.
    package static let rules = 500
    /// Conditions of one rule.
    package static let conditions = 50
    /// Bytes of an expression (`when`).
    public static let whenBytes = 4096
    /// Alternatives of an expression, counted in its disjunctive normal form.
    public static let alternatives = 256
    /// Rules, counting each alternative as one.
    public static let allAlternatives = 2000
    package static let tags = 200
    /// Members that all tags together may change.
    public static let changes = 256
    /// Test cases.
    package static let tests = 500
    /// Schemas of events. What all together may contain is bounded by `SchemaBudget`.
    package static let schemas = 200
    /// Bytes of the name of an event that has a schema.
    static let eventNameBytes = 256
    /// Names in one list: rules of a tag, destinations, names of a path.
    public static let list = 64
    /// Parameters of a function, patterns, members listed in one tag, throttles.
    public static let parameters = 32
    /// Bytes of a regular expression.
    package static let expressionBytes = 1024
    /// Different regular expressions of a document.
    public static let expressions = 64
}

/// What a document may contain. Fixed, so that a document that is valid on one server is valid on all.
public enum DocumentLimits {
    /// Bytes of the whole text: 1 MiB.
    public static let bytes = 1 << 20
    /// How deeply constants may be nested.
    public static let depth = 32
    /// Bytes of a name (UTF-8).
    public static let nameBytes = 64
    /// Values, those of all collections counted with them.
    public static let values = 1000
    package static let macros = 500
    /// How many macros may follow each other, as a function's parameter that is a function's result.
    public static let macroChain = 16
    package static let rules = 500
    package static let conditions = 50
    /// Bytes of a condition that is one expression.
    public static let whenBytes = 4096
    /// Alternatives of such an expression, that is, of its disjunctive normal form.
    public static let alternatives = 256
    /// Rules, each alternative counted as one.
    public static let allAlternatives = 2000
    package static let tags = 200
    /// Members that all tags together change.
    public static let changes = 256
    package static let tests = 500
    /// Names in one list: rules of a tag, destinations, parts of a path.
    public static let list = 64
    /// Parameters of a function, throttles, members listed in one tag.
    public static let parameters = 32
    package static let expressionBytes = 1024
    /// Different regular expressions.
    public static let expressions = 64
}

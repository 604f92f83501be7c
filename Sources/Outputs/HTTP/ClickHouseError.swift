internal import Model

/// ClickHouse's own error code (`X-ClickHouse-Exception-Code`), which says more than the HTTP status: the
/// status is 400 for a wrong query as well as for an unreadable row, and 500 for a table with too many
/// parts as well as for most else.
///
/// Source: src/Common/ErrorCodes.cpp of ClickHouse; a test compares the names with the engine's.
struct ClickHouseError {
    /// What an error is about, and so what happens to the batch.
    enum Kind: CaseIterable {
        /// A row that the table or the format rejects: the batch is bisected to find it.
        case row
        /// A condition that passes, such as too many parts: retry.
        case passing
        /// The query in the address is wrong or does not fit the table: a person must look.
        case query
        /// The table does not exist.
        case table
        /// Credentials or permissions are wrong.
        case access
    }

    /// The code; nil if the header is not a number. At most 9 digits are read, so that the number fits.
    let code: Int?

    /// Reads the value of the header.
    init(_ text: String) { code = text.utf8.count <= 9 ? Int(text) : nil }

    /// Name and kind of the code; nil for a code that is not in `groups`.
    private var known: (name: String, kind: Kind)? { code.flatMap { ClickHouseError.all[$0] } }

    /// The meaning of the error, if the status alone would mean `status`.
    func meaning(beside status: AnswerMeaning) -> AnswerMeaning {
        switch known?.kind {
        case .row: .bisect
        case .passing: .retry
        case .query, .table, .access: .hold
        // An answer with an error code is never an acknowledgement, whatever its status.
        case nil: status == .acknowledge ? .retry : status
        }
    }

    /// The message for an answer with this error: what is wrong, what to check, the error's name and code.
    func message(for status: Int) -> String {
        let hint: String? =
            switch known?.kind {
            case .row: "the table rejects (some of) these events"
            case .query: "the query does not fit the table; check the url"
            case .table: "there is no such table; create it, or check the query in the url"
            case .access: "the credentials are wrong, or not allowed to insert"
            case .passing: "ClickHouse cannot accept it now"
            case nil: nil
            }
        let said = hint.map { "answered \(status): \($0)" } ?? AnswerTable.message(for: status)
        return said + "; ClickHouse's error is "
            + (known.map { "\($0.name) (\(code ?? 0))" } ?? code.map(String.init) ?? "unreadable")
    }

    /// Name and kind of each known code, from `groups`.
    static let all: [Int: (name: String, kind: Kind)] = {
        var all: [Int: (name: String, kind: Kind)] = [:]
        for (kind, entries) in groups { for (code, name) in entries { all[code] = (name, kind) } }
        return all
    }()

    /// The known codes by kind. A code that is missing here is treated by its status.
    private static let groups: KeyValuePairs<Kind, KeyValuePairs<Int, String>> = [
        .row: [
            6: "CANNOT_PARSE_TEXT", 25: "CANNOT_PARSE_ESCAPE_SEQUENCE", 26: "CANNOT_PARSE_QUOTED_STRING",
            27: "CANNOT_PARSE_INPUT_ASSERTION_FAILED", 33: "CANNOT_READ_ALL_DATA", 38: "CANNOT_PARSE_DATE",
            41: "CANNOT_PARSE_DATETIME", 69: "ARGUMENT_OUT_OF_BOUND", 72: "CANNOT_PARSE_NUMBER",
            117: "INCORRECT_DATA",
            130: "CANNOT_READ_ARRAY_FROM_TEXT", 131: "TOO_LARGE_STRING_SIZE",
            321: "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
            349: "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN", 376: "CANNOT_PARSE_UUID", 407: "DECIMAL_OVERFLOW",
            441: "CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING", 467: "CANNOT_PARSE_BOOL",
            469: "VIOLATED_CONSTRAINT",
            563: "CANNOT_READ_MAP_FROM_TEXT", 632: "UNEXPECTED_DATA_AFTER_PARSED_VALUE",
            675: "CANNOT_PARSE_IPV4",
            676: "CANNOT_PARSE_IPV6", 691: "UNKNOWN_ELEMENT_OF_ENUM",
        ],
        .passing: [
            159: "TIMEOUT_EXCEEDED", 160: "TOO_SLOW", 198: "DNS_ERROR", 201: "QUOTA_EXCEEDED",
            202: "TOO_MANY_SIMULTANEOUS_QUERIES", 203: "NO_FREE_CONNECTION", 209: "SOCKET_TIMEOUT",
            210: "NETWORK_ERROR", 216: "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING", 225: "NO_ZOOKEEPER",
            236: "ABORTED",
            241: "MEMORY_LIMIT_EXCEEDED", 242: "TABLE_IS_READ_ONLY", 243: "NOT_ENOUGH_SPACE",
            252: "TOO_MANY_PARTS",
            254: "NO_ACTIVE_REPLICAS", 279: "ALL_CONNECTION_TRIES_FAILED", 285: "TOO_FEW_LIVE_REPLICAS",
            286: "UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE", 289: "REPLICA_IS_NOT_IN_QUORUM",
            319: "UNKNOWN_STATUS_OF_INSERT", 364: "RECEIVED_ERROR_TOO_MANY_REQUESTS",
            394: "QUERY_WAS_CANCELLED",
            574: "DISTRIBUTED_TOO_MANY_PENDING_BYTES", 733: "TABLE_IS_BEING_RESTARTED",
            745: "SERVER_OVERLOADED",
            999: "KEEPER_EXCEPTION",
        ],
        .query: [
            8: "THERE_IS_NO_COLUMN", 16: "NO_SUCH_COLUMN_IN_TABLE", 36: "BAD_ARGUMENTS",
            46: "UNKNOWN_FUNCTION",
            47: "UNKNOWN_IDENTIFIER", 48: "NOT_IMPLEMENTED", 62: "SYNTAX_ERROR", 73: "UNKNOWN_FORMAT",
            78: "UNKNOWN_TYPE_OF_QUERY", 80: "INCORRECT_QUERY", 85: "FORMAT_IS_NOT_SUITABLE_FOR_INPUT",
            115: "UNKNOWN_SETTING", 344: "SUPPORT_IS_DISABLED", 392: "QUERY_IS_PROHIBITED",
            452: "SETTING_CONSTRAINT_VIOLATION", 471: "INVALID_SETTING_VALUE", 472: "READONLY_SETTING",
        ],
        .table: [60: "UNKNOWN_TABLE", 81: "UNKNOWN_DATABASE", 218: "TABLE_IS_DROPPED"],
        .access: [
            164: "READONLY", 192: "UNKNOWN_USER", 193: "WRONG_PASSWORD", 194: "REQUIRED_PASSWORD",
            195: "IP_ADDRESS_NOT_ALLOWED", 291: "DATABASE_ACCESS_DENIED", 497: "ACCESS_DENIED",
            516: "AUTHENTICATION_FAILED", 720: "USER_EXPIRED",
        ],
    ]
}

/// Names of errors that servers use.
///
/// A word of an answer goes to the log only if it is one of these, because a server, or another program
/// that answers in its place, may echo what it was sent.
enum ErrorWords {
    /// The word itself if it is known, otherwise `other`.
    static func known(_ word: String) -> String { all.contains(word) ? word : "other" }

    /// The error that a refusing answer names in one of the usual members by a known word; otherwise nil.
    static func found(in body: [UInt8]) -> String? {
        guard let answer = JSONSlice(body[...]) else { return nil }
        let candidates = [
            answer["error"]?["type"]?.string, answer["error"]?.string, answer["error"]?["code"]?.string,
            answer["code"]?.string, answer["status"]?.string, answer["error"]?["status"]?.string,
        ]
        for case let word? in candidates where all.contains(word) { return word }
        return nil
    }

    /// Source: Google's API errors (`google.rpc.Code`), which OTLP receivers and Google answer with.
    private static let rpc: Set<String> = [
        "ABORTED", "ALREADY_EXISTS", "CANCELLED", "DATA_LOSS", "DEADLINE_EXCEEDED", "FAILED_PRECONDITION",
        "INTERNAL",
        "INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
        "UNAUTHENTICATED",
        "UNAVAILABLE", "UNIMPLEMENTED", "UNKNOWN",
    ]

    /// All known words.
    private static let all = exceptions.union(rpc)

    /// Source: Elasticsearch and OpenSearch, the names of their exception classes in `error.type`.
    private static let exceptions: Set<String> = [
        "action_request_validation_exception", "authentication_exception", "authorization_exception",
        "circuit_breaking_exception", "cluster_block_exception", "document_missing_exception",
        "document_parsing_exception", "es_rejected_execution_exception", "illegal_argument_exception",
        "illegal_state_exception", "index_closed_exception", "index_not_found_exception",
        "index_primary_shard_not_allocated_exception", "input_coercion_exception",
        "invalid_index_name_exception",
        "json_parse_exception", "mapper_exception", "mapper_parsing_exception",
        "master_not_discovered_exception",
        "no_shard_available_action_exception", "node_closed_exception", "node_not_connected_exception",
        "null_pointer_exception", "number_format_exception", "opensearch_rejected_execution_exception",
        "parsing_exception", "process_cluster_event_timeout_exception", "rejected_execution_exception",
        "resource_not_found_exception", "routing_missing_exception", "security_exception", "status_exception",
        "strict_dynamic_mapping_exception", "timeout_exception", "too_many_requests_exception",
        "unavailable_shards_exception", "validation_exception", "version_conflict_engine_exception",
        "x_content_parse_exception",
    ]
}

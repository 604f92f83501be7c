package import Model

/// The meaning of each HTTP status for the events that were sent.
///
/// The table is that of docs/guarantees.md: 2xx acknowledges; temporary failures are retried; 413 splits; 400
/// and 422 bisect; all others mean that the destination or its settings are wrong, so the events are kept
/// until a person looks. Sources of the statuses: RFC 9110, section 15; RFC 8470 (425); RFC 6585 (429).
package struct AnswerTable: Sendable, Equatable {
    /// Meanings from the settings, by status (`404`) or class (`4xx`). They take precedence over the table.
    private let outcomes: [String: AnswerMeaning]

    package init(_ outcomes: [String: AnswerMeaning] = [:]) { self.outcomes = outcomes }

    /// The settings' meaning of a status; nil if they have none. A single status takes precedence over its
    /// class.
    func override(of status: Int) -> AnswerMeaning? {
        outcomes.isEmpty ? nil : outcomes["\(status)"] ?? outcomes["\(status / 100)xx"]
    }

    /// The meaning of a final status, the settings' own included. Statuses 1xx are not final: libcurl waits
    /// for the next one.
    package func meaning(of status: Int) -> AnswerMeaning {
        if let meaning = override(of: status) { return meaning }
        switch status {
        case 200...299: return .acknowledge
        case 408, 409, 421, 425, 429: return .retry
        case 413: return .split
        case 400, 422: return .bisect
        // Not temporary like the other 5xx: the server does not know the method or the version at all.
        case 501, 505: return .hold
        case 500...599: return .retry
        default: return .hold
        }
    }

    /// The text for a status: the number, and what to check.
    static func message(for status: Int) -> String {
        let hint: String? =
            switch status {
            case 301, 302, 303, 307, 308:
                "a redirect, which is not followed; set the address that it leads to"
            case 401: "the credentials are missing or wrong; check the token or user of the destination"
            case 403: "the credentials are not allowed to write here"
            case 404, 410: "nothing is at this address; check the path in the url"
            case 405: "the address does not accept POST; check the path in the url"
            case 407: "the proxy requires credentials"
            case 411: "the destination requires a length, which was sent: check the proxies between"
            case 413: "the body is too large"
            case 415: "the format or the compression is not understood; check both"
            case 400, 422: "the destination rejects (some of) these events"
            case 429: "too many requests"
            default: nil
            }
        let answered = "answered \(status)"
        return hint.map { "\(answered): \($0)" } ?? answered
    }
}

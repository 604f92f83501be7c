/// `[destination.syslog]`: how events become messages of RFC 5424.
public struct SyslogSettings: Sendable, Equatable {
    /// What a message contains.
    package enum Content: String, Sendable, CaseIterable {
        /// The event as it is stored: JSON.
        case event
        /// The text for a person, found as format `otlp` finds its body.
        case text
    }

    /// The facilities of RFC 5424, section 6.2.1, with the names used in configurations of syslog
    /// servers. Their order is that of the numbers.
    package enum Facility: String, Sendable, CaseIterable {
        case kern, user, mail, daemon, auth, syslog, lpr, news, uucp, cron, authpriv, ftp
        case ntp, audit, alert, clock
        case local0, local1, local2, local3, local4, local5, local6, local7

        /// The facility's number, from 0 to 23.
        package var number: Int { Facility.allCases.firstIndex(of: self) ?? 1 }
    }

    package var facility = Facility.user
    package var message = Content.event
    /// Paths of members whose values become parameters of the structured data.
    package var structuredData: [String] = []
    /// Name of the element of structured data. The number behind `@` is a private enterprise number
    /// (RFC 5424, section 6.3.2); 32473 is reserved for examples (RFC 5612).
    package var structuredDataID = "spoolship@32473"
    /// Longest message in bytes, including its header.
    package var maxMessage = 8192

    package init() {}
}

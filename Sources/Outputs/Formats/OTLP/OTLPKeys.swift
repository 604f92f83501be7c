package import Model

/// Members that the settings name for the trace of a record, each in order of precedence.
package struct OTLPKeys: Sendable {
    let traceID: [MemberPath]
    let spanID: [MemberPath]
    let flags: [MemberPath]

    /// - Returns: nil if the settings name none, so that records are not searched for them.
    package init?(_ settings: OTLPSettings) {
        guard let trace = settings.trace else { return nil }
        traceID = trace.id.map { MemberPath($0) }
        spanID = trace.spanID.map { MemberPath($0) }
        flags = trace.flags.map { MemberPath($0) }
    }
}

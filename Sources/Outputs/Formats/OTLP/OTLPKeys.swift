package import Model

/// Members that the settings name for the trace of a record, each in order of precedence.
package struct OTLPKeys: Sendable {
    let traceID: [MemberPath]
    let spanID: [MemberPath]
    let flags: [MemberPath]

    /// - Returns: nil if the settings name none, so that records are not searched for them.
    package init?(_ settings: OTLPSettings) {
        func paths(_ members: [String]?) -> [MemberPath] { (members ?? []).map { MemberPath($0) } }
        traceID = paths(settings.traceID)
        spanID = paths(settings.spanID)
        flags = paths(settings.traceFlags)
        guard !(traceID.isEmpty && spanID.isEmpty && flags.isEmpty) else { return nil }
    }
}

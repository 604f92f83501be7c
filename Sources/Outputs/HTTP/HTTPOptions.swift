package import Model

/// How an HTTP destination is reached: its settings, and options without a setting.
package struct HTTPOptions: Sendable, Equatable {
    package var settings = DestinationSettings()
    /// Value of `User-Agent`.
    package var userAgent = "spoolship"
    /// Longest time without a byte in either direction, after which a request is given up. Default nil:
    /// half of `request_timeout`, at least 30 s.
    package var stallTimeout: Duration?
    /// Whether the proxy variables of the environment count if the settings name no proxy; default true.
    package var heedsEnvironment = true

    package init(_ settings: DestinationSettings, userAgent: String) {
        self.settings = settings
        self.userAgent = userAgent
    }

    package init(url: String) { settings.url = EndpointURL(url) }

    /// How requests and answers differ from the usual; not at all for types without such settings, as `s3`.
    var http: HTTPSettings { if case .http(let http) = settings.reach { http } else { HTTPSettings() } }

    /// Where requests go; empty if no address is set.
    var url: String { settings.url?.text ?? "" }
}

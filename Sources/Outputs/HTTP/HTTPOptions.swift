package import Model

/// How one HTTP destination is reached: its settings, and options without a setting.
package struct HTTPOptions: Sendable, Equatable {
    package var settings = DestinationSettings()
    package var userAgent = "spoolship"
    /// The longest time in which nothing moves in either direction; nil is half of `request_timeout`, at least 30 s.
    package var stallTimeout: Duration?
    /// Whether `https_proxy` and the like in the environment count where the settings name no proxy; default yes.
    package var heedsEnvironment = true

    package init(_ settings: DestinationSettings, userAgent: String) {
        self.settings = settings
        self.userAgent = userAgent
    }

    package init(url: String) { settings.url = EndpointURL(url) }

    /// Where requests go; empty for nowhere.
    var url: String { settings.url?.text ?? "" }
}

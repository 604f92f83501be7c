public import Model

/// How one HTTP destination is reached: its settings, and options without a setting.
public struct HTTPOptions: Sendable, Equatable {
    /// The destination's settings.
    public var settings = DestinationSettings()
    /// How the agent names itself.
    public var userAgent = "spoolship"
    /// The longest time in which nothing moves in either direction; nil is half of `request_timeout`, at least 30 s.
    public var stallTimeout: Duration?
    /// Whether `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` of the environment count where the settings name no
    /// proxy; default yes.
    public var heedsEnvironment = true

    /// The options of a destination.
    public init(_ settings: DestinationSettings, userAgent: String) {
        self.settings = settings
        self.userAgent = userAgent
    }

    package init(url: String) { settings.url = EndpointURL(url) }

    /// Where requests go; empty for nowhere.
    var url: String { settings.url?.text ?? "" }
}

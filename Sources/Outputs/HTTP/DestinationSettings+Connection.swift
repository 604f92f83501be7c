internal import Model

extension DestinationSettings {
    /// Options for connections that carry another protocol than HTTP. Only name resolution, the proxy and
    /// the timeouts matter; the address is a placeholder.
    var bareConnection: HTTPOptions {
        var options = HTTPOptions(url: "http://localhost/")
        options.heedsEnvironment = false
        options.settings.proxy = proxy
        options.settings.connectTimeout = connectTimeout
        options.settings.requestTimeout = requestTimeout
        return options
    }
}

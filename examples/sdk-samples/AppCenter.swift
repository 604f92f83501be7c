import SpoolshipClient

/// App Center Analytics: settings before start, a session begun by the app, properties, a critical event, a pause, the switch.
func appCenter(directory: String, socket: String) async throws -> String {
    Analytics.enableManualSessionTracker()
    try Analytics.setTransmissionInterval(.seconds(10))
    try Analytics.setCountryCode("IT")
    var settings = ClientSettings(directory: directory)
    settings.name = "app-center"
    settings.controlSocket = socket
    try Analytics.start(settings)

    try Analytics.startSession()
    try Analytics.trackEvent("Video clicked", withProperties: ["Category": "Music", "FileName": "favorite.avi"])
    var properties = EventProperties()
    properties.setEventProperty("card", forKey: "Method")
    properties.setEventProperty(12.5, forKey: "Amount")
    try Analytics.trackEvent("Payment failed", withProperties: properties, flags: .critical)

    try Analytics.pause()
    try Analytics.trackEvent("While paused")
    try Analytics.resume()
    try Analytics.setEnabled(false)
    try Analytics.trackEvent("While disabled")
    try Analytics.setEnabled(true)

    let report = try await Analytics.dispatchAndWait()
    try Analytics.stop()
    return "\(report.result.rawValue), \(report.confirmedBy.rawValue)"
}

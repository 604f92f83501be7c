import SpoolshipClient

/// Google Analytics: nothing is sent by itself; before the app goes to the background, it sends what waits.
func googleAnalytics(directory: String, socket: String) async throws -> String {
    var settings = ClientSettings(directory: directory)
    settings.name = "google-analytics"
    settings.controlSocket = socket
    let client = try AnalyticsClient(settings)
    client.dispatchInterval = .zero
    for screen in ["Home", "List", "Detail"] { try client.track("screenview", properties: ["screen": screen]) }
    // There the app called dispatch again for as long as the result was good and its background task had time. Here one call sends all.
    let first = await client.dispatchAndWait(timeout: .seconds(25))
    let second = await client.dispatchAndWait(timeout: .seconds(25))
    try client.close()
    return "\(first.result.rawValue), then \(second.result.rawValue)"
}

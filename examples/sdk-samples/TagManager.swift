import SpoolshipClient

/// Google Tag Manager: opens a container, reads its values, pushes into the data layer, which a tag reads.
func tagManager(directory: String, socket: String) async throws -> String {
    let container = AgentContainer(id: "GTM-1234", socket: socket)
    try container.open(.preferNonDefault, timeout: .milliseconds(100))
    let greeting = try container.string(forKey: "greeting")
    let limit = try container.integer(forKey: "limit")

    var settings = ClientSettings(directory: directory)
    settings.name = "tag-manager"
    settings.controlSocket = socket
    let client = try AnalyticsClient(settings)
    try client.push(["event": "openScreen", "screenName": "Home"])
    try client.track("Purchase", properties: ["amount": 12.5])
    let report = await client.dispatchAndWait()
    try client.close()
    return "\(try container.isDefault() ? "default" : "published"), \(greeting), \(limit), \(report.result.rawValue)"
}

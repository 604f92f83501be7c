// Tracks one event: swift run track DIRECTORY NAME
import Glibc
import SpoolshipClient

guard CommandLine.arguments.count == 3 else { exit(64) }
var settings = ClientSettings(directory: CommandLine.arguments[1])
settings.style = .dropFiles
do {
    let client = try AnalyticsClient(settings)
    let number = 1.5
    try client.trackEvent(CommandLine.arguments[2], withProperties: ["language": "Swift", "number": number])
    // When this returns the event survives a power cut.
    try client.close()
} catch {
    let message = "track: \(error)\n"
    write(2, message, message.utf8.count)
    exit(error.code == .refused || error.code == .onlyCritical ? 75 : 73)
}

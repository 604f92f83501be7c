//  The first programs that the documentation of three SDKs shows, for a server. `client-samples DIRECTORY SOCKET` runs them one after
//  the other and prints how each ended; docs/analytics.md says what differs.

import SpoolshipClient

@main
enum Samples {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 3 else {
            print("usage: client-samples DIRECTORY SOCKET")
            return
        }
        print("App Center: \(try await appCenter(directory: words[1], socket: words[2]))")
        print("Google Analytics: \(try await googleAnalytics(directory: words[1], socket: words[2]))")
        print("Tag Manager: \(try await tagManager(directory: words[1], socket: words[2]))")
    }
}

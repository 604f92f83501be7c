/// A value that the settings name. A name without dots is a member's. One with dots is a member's as a whole,
/// and otherwise a way through objects. `EventPath` is the same for names that formats know.
struct MemberPath: Sendable {
    /// The name as a whole, in UTF-8.
    let name: [UInt8]
    /// The name, if formats know it.
    let known: EventName?
    /// The parts between the dots; empty for a name without dots.
    let parts: [[UInt8]]

    init(_ text: String) {
        name = Array(text.utf8)
        known = EventName(text)
        let split = text.split(separator: ".").map { Array($0.utf8) }
        parts = split.count > 1 ? split : []
    }
}

/// Where the events of each app have their message, besides the usual names: `[apps.NAME] message`.
package struct MessagePaths: Sendable {
    /// The paths in order of precedence, by the app's name.
    private let byApp: [String: [MemberPath]]

    /// - Parameter paths: members or paths in order of precedence, by the app's name.
    package init(_ paths: [String: [String]] = [:]) {
        byApp = paths.mapValues { $0.map { MemberPath($0) } }
    }

    /// The paths for an app's events, in order of precedence; empty for apps without the setting.
    ///
    /// - Parameter app: asked for only if any app has the setting.
    func of(_ app: @autoclosure () -> String?) -> [MemberPath] {
        guard !byApp.isEmpty, let app = app() else { return [] }
        return byApp[app] ?? []
    }
}

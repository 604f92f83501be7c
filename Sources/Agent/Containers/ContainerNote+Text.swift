internal import Containers
internal import EventLoops
internal import Logs
internal import Model

/// The texts of what happens to a container.
extension ContainerNote {
    /// Logs the note: a warning for what a person should know or fix, information for changes, debugging for
    /// the rest.
    func write(to log: Log, container: String) {
        switch self {
        case .began(let type):
            log.debug("refresh began", ["container": container, "type": type.rawValue])
        case .succeeded(let type, let version, let isNew):
            log.debug(
                "refresh ended",
                ["container": container, "type": type.rawValue, "version": version, "new": isNew])
        // Normal at a first start, so no warning.
        case .failed(.saved, .noSavedContainer, _):
            log.info("container has no saved document", ["container": container])
        case .failed(let type, let result, let message):
            log.warning(
                "refresh failed, the container stays as it is",
                ["container": container, "type": type.rawValue, "reason": result.rawValue, "hint": message])
        case .opened(let source, let version):
            log.info(
                "container open",
                ["container": container, "source": source.rawValue, "version": version ?? 0])
        case .tookOver(let source, let version):
            log.info(
                "container in force",
                ["container": container, "source": source.rawValue, "version": version ?? 0])
        case .previewBegan(let version):
            log.warning("preview began", ["container": container, "version": version])
        case .previewEnded(let byTime):
            log.warning("preview ended", ["container": container, "by": byTime ? "time" : "command"])
        case .expired(let version):
            log.warning("container expired", ["container": container, "version": version])
        case .heldBack(let version):
            log.info(
                "version rolls out to other machines first", ["container": container, "version": version])
        }
    }

    /// The note as a line of `container watch`.
    func json(container: String, at time: Timestamp) -> JSONValue {
        let head: [(String, JSONValue)] = [
            ("time_ms", .integer(Int(time.milliseconds))), ("container", .string(container)),
        ]
        return .object((head + members).map { JSONValue.Member($0.0, $0.1) })
    }

    /// The members of the line that depend on the kind of note. Clients parse them, so a name that was
    /// published once must not change.
    private var members: [(String, JSONValue)] {
        switch self {
        case .began(let type):
            [("event", "refresh_began"), ("type", .string(type.rawValue))]
        case .succeeded(let type, let version, let isNew):
            [
                ("event", "refresh_ended"), ("type", .string(type.rawValue)), ("result", "success"),
                ("version", .integer(version)), ("new", .bool(isNew)),
            ]
        case .failed(let type, let result, let message):
            [
                ("event", "refresh_ended"), ("type", .string(type.rawValue)),
                ("result", .string(result.rawValue)),
                ("message", .string(message)),
            ]
        case .opened(let source, let version):
            [("event", "opened"), ("source", .string(source.rawValue)), ("version", JSONValue(version))]
        case .tookOver(let source, let version):
            [("event", "in_force"), ("source", .string(source.rawValue)), ("version", JSONValue(version))]
        case .previewBegan(let version): [("event", "preview_began"), ("version", .integer(version))]
        case .previewEnded(let byTime): [("event", "preview_ended"), ("by", byTime ? "time" : "command")]
        case .expired(let version): [("event", "expired"), ("version", .integer(version))]
        case .heldBack(let version): [("event", "held_back"), ("version", .integer(version))]
        }
    }
}

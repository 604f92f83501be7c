internal import Configuration
internal import EventLoops
public import Model
internal import Spool

extension Settings {
    /// A file of a destination that is used for something else too, which the start refuses: the setting, and
    /// the mistake. Two writers would mix their lines, and a file that is read as well would feed the agent
    /// with its own output.
    var fileMistake: (setting: String, message: String)? {
        var known: [String: String] = [:]
        for destination in destinations where destination.kind == .file {
            guard let path = destination.path else { continue }
            // If the file system does not answer, the path as written is compared: a start must not hang on
            // it.
            let real = SilentFiles.realPath(of: path)
            let setting = "destination.\(destination.name).path"
            if let use = otherUse(of: real) { return (setting, "\(path) \(use)") }
            if let other = known.updateValue(destination.name, forKey: real) {
                return (setting, "\(path) is the file of \(other): each destination needs its own")
            }
        }
        return nil
    }

    /// What else the agent uses a file for; nil for nothing.
    private func otherUse(of real: String) -> String? {
        for own in [spool.directory, agent.stateDirectory]
        where real.hasPrefix(DistantMount.realPath(of: own) + "/") {
            return "is in \(own), which is the agent's own"
        }
        if let app = places.first(where: { $0.holds(real, root: $0.resolved.root) })?.app {
            return "is read for \(app) (apps.\(app).read): each event would come back as a new one"
        }
        let configuration = Set(
            origins.values.compactMap { origin -> String? in
                if case .file(let position) = origin {
                    position.file
                } else {
                    nil
                }
            })
        return configuration.contains { RealPath.of($0) == real } ? "is a file of the configuration" : nil
    }
}

extension DestinationSettings {
    /// The files with its credentials and certificates.
    var namedFiles: [String] {
        let secrets = secrets.compactMap { secret -> String? in
            if case .file(let file)? = secret.source {
                file
            } else {
                nil
            }
        }
        return secrets + [tls.caFile, tls.certificateFile, tls.keyFile].compactMap { $0 }
    }

    /// The files that it reads, and the file that it writes.
    public var files: [String] { namedFiles + [path].compactMap(\.self) }

    /// The first of its files whose file system does not answer: the start continues without this
    /// destination.
    public var silentFile: String? {
        files.first { file in SilentFiles.answer(about: file) { _ = FileStatus(file) } == nil }
    }
}

internal import Glibc

/// Paths without links, to be compared.
public enum RealPath {
    /// As many as the kernel follows.
    public static let mostLinks = 40

    /// Where a path leads, through links; the name of a file that is not there yet stays as it is.
    ///
    /// - Parameter links: how many links to nothing are followed.
    public static func of(_ path: String, links: Int = mostLinks) -> String {
        if let resolved = ofExisting(path) { return resolved }
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return path }
        let directory = of(String(path[..<slash]), links: links)
        let whole = directory + path[slash...]
        guard let target = target(of: whole), links > 0 else { return whole }
        return of(target.hasPrefix("/") ? target : "\(directory)/\(target)", links: links - 1)
    }

    /// Where a path leads; nil, and errno says why, where that is nothing.
    public static func ofExisting(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// What a link says; nil, and errno says why, for what is none. By an empty name: what the opened link says.
    package static func target(of name: String, in directory: Int32 = -1) -> String? {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlinkat(directory, name, &target, target.count)
        guard length >= 0 else { return nil }
        return String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

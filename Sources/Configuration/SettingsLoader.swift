internal import EventLoops
internal import Glibc
public import Model

/// A configuration that was read: its settings, and warnings for a person.
public struct LoadedSettings: Sendable, Equatable {
    /// The settings, complete and consistent.
    public let settings: Settings
    /// Warnings: settings that are allowed, but probably not meant.
    public let warnings: [Problem]
    /// Paths of the files that were read, in order: later ones override earlier ones.
    public let files: [String]

    /// The lines of the files, for problems that are found later.
    let sources: SourceLines

    /// A problem with what a setting names (a file, a port), at the line that set it, if a line did.
    ///
    /// - Parameter path: the whole path of the setting: `destination.main.tls.ca_file`.
    public func problem(
        _ code: Problem.Code, _ message: String, about path: String, severity: Problem.Severity = .error
    ) -> Problem {
        guard case .file(let position) = settings.origin(of: path) else {
            return Problem(code, "\(path) \(message)", severity: severity)
        }
        return Problem(
            code, "\(path) \(message)", at: position, sourceLine: sources[position], severity: severity)
    }
}

/// Path and text of a configuration file.
public struct ConfigurationText: Sendable, Equatable {
    /// Path, as it is shown in problems.
    package let file: String
    /// The whole text.
    package let text: String

    /// A file with its text.
    package init(file: String, text: String) {
        self.file = file
        self.text = text
    }

    /// A file with its bytes.
    ///
    /// - Throws: a problem with line and column if the bytes are not UTF-8. Replacing them silently could
    ///   change a password.
    public init(file: String, bytes: [UInt8]) throws(Problem) {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            let place = error.byteOffsets.lowerBound
            let before = String(decoding: bytes[..<place], as: UTF8.self).unicodeScalars
            throw Problem(
                .syntax,
                "not UTF-8: byte 0x\(String(bytes[place], radix: 16, uppercase: true)); TOML is UTF-8, save "
                    + "the file in that encoding",
                at: Position(
                    file: file, line: before.count { $0 == "\n" } + 1,
                    column: before.reversed().prefix { $0 != "\n" }.count + 1))
        }
        self.init(file: file, text: String(decoding: bytes, as: UTF8.self))
    }
}

extension Settings {
    /// Largest configuration file, 1 MiB: a larger one is another file by mistake.
    public static let largestFile = 1 << 20

    /// Reads a file, and `conf.d/*.toml` beside it, sorted by name.
    ///
    /// - Parameter judge: returns mistakes that only callers can find, such as an expression that does not
    ///   compile.
    /// - Throws: all mistakes of all files, also those of files that cannot be read.
    public static func load(
        path: String, judge: (Settings) -> [SettingMistake] = { _ in [] }
    ) throws(ConfigurationError) -> LoadedSettings {
        var problems: [Problem] = []
        var texts: [ConfigurationText] = []
        var paths = [path]
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        let directory = parent + "conf.d"
        do {
            let names = try namesOfParts(in: directory)
            paths += names.filter { $0.hasSuffix(".toml") }.map { "\(directory)/\($0)" }
            for name in names where [".TOML", ".conf", ".toml.txt"].contains(where: name.hasSuffix) {
                problems.append(
                    Problem(.conflict, "\(directory)/\(name) is not read: only *.toml is", severity: .warning)
                )
            }
        } catch {
            problems.append(
                Problem(.unreadable, "cannot list \(directory): \(SystemError.message(error.number))"))
        }
        for path in [parent.isEmpty ? "." : parent, directory] {
            for found in FileTrust.problems(directory: path) where !problems.contains(found) {
                problems.append(found)
            }
        }
        for path in paths {
            do throws(Problem) {
                let (bytes, distrust) = try readBytes(path: path)
                if let distrust {
                    problems.append(distrust)
                }
                texts.append(try ConfigurationText(file: path, bytes: bytes))
            } catch {
                problems.append(error)
            }
        }
        return try read(texts, problems: problems, judge: judge)
    }

    /// Reads texts in order. Later ones override single settings; `[[…]]` sections are added.
    ///
    /// - Parameters:
    ///   - problems: problems that were found before.
    ///   - environment: gives the values of `${NAME}`.
    ///   - judge: as in `load`.
    /// - Throws: all mistakes, in the order of files and lines.
    public static func read(
        _ texts: [ConfigurationText], problems: [Problem] = [],
        environment: (String) -> String? = Variables.ofProcess,
        judge: (Settings) -> [SettingMistake] = { _ in [] }
    ) throws(ConfigurationError) -> LoadedSettings {
        var context = ReadContext(problems: problems)
        var settings = Settings()
        for text in texts {
            context.sources.add(text.text, file: text.file)
            var (root, mistakes) = TOMLText.read(text.text, file: text.file, sources: context.sources)
            context.problems += mistakes
            Variables.fill(&root, from: environment, context: &context)
            settings.read(root, path: "", context: &context)
        }
        // Only if all lines could be read. Otherwise settings in the unreadable ones would be reported as
        // missing.
        let readable = !context.problems.contains { $0.code == .syntax || $0.code == .unreadable }
        if readable {
            context.checkConsistency(of: settings)
            settings.origins = context.origins
            for mistake in judge(settings) { context.add(mistake) }
        }
        context.close()
        settings.origins = context.origins
        TypeDefault.apply(to: &settings.destinations, &settings.origins)
        let files = texts.map(\.file)
        let sorted = context.problems.enumerated().sorted { left, right in
            func place(_ problem: Problem, _ index: Int) -> (Int, Int, Int, Int) {
                guard let position = problem.position else { return (files.count, 0, 0, index) }
                return (
                    files.firstIndex(of: position.file) ?? files.count, position.line, position.column, index
                )
            }
            return place(left.element, left.offset) < place(right.element, right.offset)
        }.map(\.element)
        guard sorted.allSatisfy({ $0.severity != .error }) else {
            // If the files are TOML, they say where the control socket of the running agent is.
            throw ConfigurationError(
                problems: sorted, controlSocket: readable ? settings.control.socket : nil)
        }
        return LoadedSettings(settings: settings, warnings: sorted, files: files, sources: context.sources)
    }

    /// Names in a directory, sorted, without hidden ones; empty if there is no directory.
    private static func namesOfParts(in directory: String) throws(SystemError) -> [String] {
        do throws(SystemError) {
            return try WholeFile.names(in: directory).filter { !$0.hasPrefix(".") }
                .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        } catch {
            guard error.number == ENOENT || error.number == ENOTDIR else { throw error }
            return []
        }
    }

    /// Owner and mode of a file for a message; empty if they cannot be read.
    private static func owner(of path: String) -> String {
        guard let status = FileStatus(path) else { return "" }
        return "owner \(status.ownerName):\(status.groupName), mode \(status.shownMode); "
    }

    /// Reads a regular file, and returns who else can write it, as a problem.
    private static func readBytes(path: String) throws(Problem) -> (bytes: [UInt8], distrust: Problem?) {
        // Non-blocking (open(2), O_NONBLOCK): a FIFO of that name would otherwise block the start. It is
        // refused below.
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard raw >= 0 else {
            let error = SystemError("open")
            let advice =
                switch error.number {
                case EACCES:
                    "; user \(FileStatus.name(ofUser: geteuid())) may not read it (\(owner(of: path))chmod "
                        + "and chgrp change that)"
                case ENOENT: "; give another with --config FILE"
                default: ""
                }
            throw Problem(
                .unreadable, "\(path) cannot be read: \(SystemError.message(error.number))\(advice)")
        }
        let descriptor = Descriptor(raw)
        guard let status = try? FileStatus(of: descriptor.raw), status.isRegular else {
            throw Problem(.unreadable, "\(path) cannot be read: it is not a regular file")
        }
        do throws(SystemError) {
            if let bytes = try WholeFile.bytes(of: descriptor.raw, atMost: largestFile) {
                return (bytes, FileTrust.problem(path, status))
            }
        } catch {
            throw Problem(.unreadable, "\(path) cannot be read: \(SystemError.message(error.number))")
        }
        throw Problem(
            .unreadable, "\(path) is larger than \(SizeText.print(largestFile)); is it the right file?")
    }

    /// The same settings with another value for one of them.
    ///
    /// The value is checked as one in a file, also against the other settings: a container (`may_set`) or a
    /// command cannot set what a file could not.
    ///
    /// - Throws: `ConfigurationError` with what is wrong with the value.
    public func setting(
        _ path: String, to value: JSONValue, origin: Origin
    ) throws(ConfigurationError) -> Settings {
        let listed = Settings.listedPath(of: path)
        guard let setting = effective.first(where: { $0.path == listed }),
            !setting.section.path.contains(".")
        else {
            throw ConfigurationError(problems: [
                Problem(.unknownKey, "no setting \(path) that can be set at run time")
            ])
        }
        guard let node = TOMLNode(value) else {
            throw ConfigurationError(problems: [
                Problem(.wrongType, "\(path) has a value that no setting can have")
            ])
        }
        var context = ReadContext(origins: origins, origin: origin)
        // Behind the setting's name can only be the name of one of its two values.
        let keys = path.dropFirst(setting.section.path.count + 1).split(separator: ".")
        let section = keys.reversed().reduce(node) { inner, key in
            TOMLNode(value: .table([.init(key: String(key), node: inner)]))
        }
        let root = TOMLNode(value: .table([.init(key: setting.section.path, node: section)]))
        var changed = self
        changed.read(root, path: "", context: &context)
        if context.problems.allSatisfy({ $0.severity != .error }) {
            context.checkConsistency(of: changed)
        }
        let errors = context.problems.filter { $0.severity == .error }
        guard errors.isEmpty else { throw ConfigurationError(problems: errors) }
        changed.origins = context.origins
        TypeDefault.apply(to: &changed.destinations, &changed.origins)
        return changed
    }

    /// The path under which a setting is listed: without the name of one of its two values, and that of its
    /// new key, if the path has an old one.
    package static func listedPath(of path: String) -> String {
        let current = currentPath(of: path)
        let parts = current.split(separator: ".")
        let isOfPair = current != path || halves(of: parts.prefix(2)).contains { $0 == parts.last ?? "" }
        return isOfPair && parts.count == 3 ? parts.prefix(2).joined(separator: ".") : current
    }

    /// The path of the second of a setting's two values, if `value` for the path would set it.
    ///
    /// Whoever may set `limits.name_length` may set how long a name can be. What happens to a longer one is
    /// another matter, `limits.name_length.beyond`.
    package static func secondValue(in value: JSONValue, for path: String) -> String? {
        guard let second = halves(of: path.split(separator: ".")[...]).last, value[second] != nil else {
            return nil
        }
        return "\(path).\(second)"
    }

    /// The path of what an old key sets: `limits.name_length.beyond`; another path stays as it is.
    package static func currentPath(of path: String) -> String {
        let parts = path.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let section = description.first(where: { $0.name == parts[0] }),
            let old = section.oldKeys.first(where: { $0.name == parts[1] })
        else { return path }
        return "\(section.name).\(old.now)"
    }

    /// The names of a setting's two values; empty for other settings.
    private static func halves(of path: ArraySlice<Substring>) -> [String] {
        guard path.count == 2, let section = description.first(where: { $0.name == path[path.startIndex] })
        else { return [] }
        for case .setting(let setting) in section.entries where setting.name == path.last ?? "" {
            return setting.halves
        }
        return []
    }
}

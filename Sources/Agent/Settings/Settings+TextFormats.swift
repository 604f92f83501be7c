internal import Configuration
internal import Model
internal import TextFormats

extension AppSettings {
    /// The format of the app's lines of text, compiled.
    var textFormat: CompiledTextFormat {
        var settings = TextFormatSettings()
        settings.parse = parse
        settings.pattern = pattern
        settings.firstLine = firstLine
        settings.columns = columns ?? []
        settings.numbers = numbers ?? []
        settings.keepLine = keepLine
        return CompiledTextFormat(settings)
    }
}

/// The result of compiling `parse`, `pattern` and `first_line` of an app: a format, nothing, or a mistake.
enum CompiledTextFormat {
    /// The app has none of these settings.
    case none
    case format(TextFormat)
    /// The settings are invalid; the start refuses them with this error.
    case mistake(TextFormatError)

    /// Compiles the settings. A mistake is kept and not thrown, so that `check` can report the mistakes of
    /// all apps at once.
    init(_ settings: TextFormatSettings) {
        guard !settings.isEmpty else {
            self = .none
            return
        }
        do throws(TextFormatError) {
            self = .format(try TextFormat(settings))
        } catch {
            self = .mistake(error)
        }
    }

    /// The format; nil also for a mistake, which the start refuses.
    var format: TextFormat? {
        if case .format(let format) = self { return format }
        return nil
    }

    /// The mistake in the format, or in its combination with other settings of the app; nil if all is well.
    func mistake(with app: AppSettings) -> (key: String, message: String)? {
        switch self {
        case .mistake(let error): return (error.key, error.message)
        case .none:
            // Without a format these settings are ignored. They are refused instead, because their author
            // expects an effect.
            let others = [
                ("columns", app.columns != nil), ("numbers", app.numbers != nil),
                ("keep_line", app.keepLine != nil), ("unmatched", app.unmatched != nil),
            ]
            if let key = others.first(where: \.1)?.0 {
                return (key, "has no effect without parse or pattern")
            }
        case .format(let format):
            // The setting that chose the format: messages name it, because the app has at most one.
            let key = app.parse != nil ? "parse" : app.pattern != nil ? "pattern" : "first_line"
            if app.journal.read == true { return (key, "is for files, not for the journal") }
            if app.text == .blocks {
                return ("text", "is blocks: remove it, \(key) says where a record begins")
            }
            if !format.parses, app.read == nil {
                return (key, "is for files that are read in place: set read")
            }
        }
        return nil
    }
}

extension TextFormat {
    /// How the reader of files recognises the first line of a record; nil if each line is a record.
    var recordStart: RecordStart? {
        guard joinsLines else { return nil }
        return RecordStart(name: "\(settings)") { line, previous in self.begins(line, after: previous) }
    }
}

internal import Configuration
internal import EventLoops
internal import Intake
internal import Schemas

extension Settings {
    /// The schemas of `schemas.directory`; nil if none is set. Throws for a directory or a schema that cannot
    /// be used.
    func schemaRules() throws(AgentError) -> SchemaRules? {
        do throws(SchemaError) {
            return try readSchemas()
        } catch {
            throw AgentError(.configuration, "schemas.directory: \(error.message)")
        }
    }

    /// Reads the schemas; nil if no directory is set. A directory on a file system that hangs must not stop
    /// the start, so it is read on another thread (`SilentFiles`).
    private func readSchemas() throws(SchemaError) -> SchemaRules? {
        guard let directory = schemas.directory else { return nil }
        let answer = SilentFiles.answer(about: directory) { () -> Result<SchemaSet, SchemaError> in
            Result { () throws(SchemaError) in try SchemaFiles.read(directory) }
        }
        switch answer {
        case .success(let set): return SchemaRules(set: set, isReport: schemas.mode == .report)
        case .failure(let error): throw error
        case nil: throw SchemaError("cannot read \(directory): its file system does not answer")
        }
    }

    /// Why the start would refuse the schemas; nil if it would not.
    var schemaMistake: String? {
        do throws(SchemaError) {
            _ = try readSchemas()
            return nil
        } catch {
            return error.message
        }
    }
}

internal import Configuration
internal import Containers
internal import EventLoops
internal import Intake
internal import Schemas

extension Settings {
    /// The schemas of `schemas.directory`, none if it is not set, and their mode. Throws for a directory or a
    /// schema that cannot be used.
    func schemaRules() throws(AgentError) -> SchemaRules {
        do throws(SchemaError) {
            return try readSchemas()
        } catch {
            throw AgentError(.configuration, "schemas.directory: \(error.message)")
        }
    }

    /// Reads the schemas. A directory on a file system that hangs must not stop the start, so it is read on
    /// another thread (`SilentFiles`).
    private func readSchemas() throws(SchemaError) -> SchemaRules {
        let isReport = schemas.mode == .report
        guard let directory = schemas.directory else { return SchemaRules(isReport: isReport) }
        let answer = SilentFiles.answer(about: directory) { () -> Result<SchemaSet, SchemaError> in
            Result { () throws(SchemaError) in try SchemaFiles.read(directory) }
        }
        switch answer {
        case .success(let set): return SchemaRules(set: set, isReport: isReport)
        case .failure(let error): throw error
        case nil: throw SchemaError("\(directory) cannot be read: its file system does not answer")
        }
    }

    /// The schemas for a sample of lines: those of the directory and of the containers' default files.
    func schemasForSample() throws(AgentError) -> SchemaRules {
        let rules = try schemaRules()
        var layers: [SchemaLayer] = []
        for container in containers {
            guard let file = container.defaultFile,
                let standard = try? DefaultFile(path: file, id: container.id),
                let compiled = try? CompiledContainer(standard.document, apps: Set(container.apps))
            else { continue }
            layers += compiled.schemas.map { [$0] } ?? []
        }
        return SchemaRules(set: rules.set.followed(by: layers), isReport: rules.isReport)
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

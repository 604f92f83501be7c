internal import Model

/// `[destination.body]`: the text of requests of format `template`.
///
/// The pieces are written as they are: whether the whole is what the receiver reads cannot be checked here.
extension BodySettings: SettingsSection {
    static let entries: [Entry<BodySettings>] = [
        .setting(
            "event", \.event, optional: BodyTemplate.settingType,
            "What is written for each event. Placeholders: {{event}}, {{base64}}, {{json:PATH}} (a member as JSON), {{text:PATH}} (inside"
                + " quotes), {{app}}, {{name}}, {{level}}, {{host}}, {{id}}, {{time}}, {{seconds}}, {{milliseconds}}, {{nanoseconds}}.",
            example: "'{\"data\":\"{{base64}}\"}'"),
        .setting(
            // Fragments may be empty or contain line feeds; `.text` would refuse both.
            "begin", \.begin, BodyTemplate.fragmentType, "What is before the first event.",
            example: "'{\"messages\":['"),
        .setting(
            "separator", \.separator, BodyTemplate.fragmentType, "What is between two events.", example: "','"
        ),
        .setting("end", \.end, BodyTemplate.fragmentType, "What is behind the last event.", example: "']}'"),
        .setting("method", \.method, .choice, "The method of requests."),
    ]
}

/// `[destination.accept]`: what an answer must be to acknowledge a batch. Without it every status from 200 to
/// 299 does, and the events of a receiver that reports errors with 200 would be lost.
extension AcceptSettings: SettingsSection {
    static let entries: [Entry<AcceptSettings>] = [
        .setting(
            "status", \.statuses, statusesType,
            "The statuses that acknowledge, if not each of 200 to 299.", example: "[202]"),
        .setting(
            "body", \.body, optional: .text(),
            "A text that the answer must hold (blanks do not count), for receivers that answer 200 to errors. Without it the batch is"
                + " sent again.", example: "'\"FailedRecordCount\":0'"),
    ]
}

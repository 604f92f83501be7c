internal import Model

extension Template.Place {
    /// A value of an event in the form that is safe in this place: it cannot begin another part of a name,
    /// lead elsewhere or be refused.
    ///
    /// Letters, digits, `_` and `-` stay (only ASCII ones if the place allows no others); other characters
    /// become `_`, and the value ends after 64 bytes. An index is in lower case and does not begin with `_`
    /// or `-`; a key may contain a dot, but not first; a label may contain every printable character; headers
    /// and addresses get only what needs no escape in either. Source: Elasticsearch reference, "Create index
    /// API"; Apache Kafka, `Topic.validate`; NATS documentation, "Subject-Based Messaging"; Amazon S3 User
    /// Guide, "Naming Amazon S3 objects".
    /// - Returns: nil if no character is left.
    func safe(_ value: String) -> String? {
        var text = ""
        var length = 0
        for scalar in value.unicodeScalars {
            let safe = self.safe(scalar, isFirst: text.isEmpty)
            guard let safe else { continue }
            length += UTF8.width(safe)
            if length > Template.longestValue { break }
            text.unicodeScalars.append(safe)
        }
        return text.isEmpty ? nil : text
    }

    /// A character in the form that is safe at this point of a value; nil to leave it out.
    private func safe(_ scalar: Unicode.Scalar, isFirst: Bool) -> Unicode.Scalar? {
        switch scalar {
        case "a"..."z", "0"..."9": return scalar
        case "A"..."Z": return self == .index ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar
        case "_", "-": return self == .index && isFirst ? nil : scalar
        default: break
        }
        let stays: Bool =
            switch self {
            case .index, .topic: false
            case .subject: scalar.isLetterOrDigit
            case .key: scalar.isLetterOrDigit || scalar == "." && !isFirst
            case .label: scalar.isShown
            case .request, .address: scalar == "." && !isFirst
            }
        guard !stays else { return scalar }
        return self == .index && isFirst ? nil : "_"
    }
}

extension Unicode.Scalar {
    /// Whether the character is a letter or digit of any script. Marks count, because words of some scripts
    /// need them.
    fileprivate var isLetterOrDigit: Bool {
        switch properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .nonspacingMark,
            .spacingMark, .decimalNumber:
            true
        default: false
        }
    }

    /// Whether the character has a visible form or is a space: neither a control character nor an unassigned
    /// one.
    fileprivate var isShown: Bool {
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator:
            false
        default: true
        }
    }
}

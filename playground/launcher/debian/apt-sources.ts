/** One archive of a Debian package source, as far as this project needs it. */
export interface AptSource {
  readonly uris: readonly string[]
  readonly suites: readonly string[]
  readonly components: readonly string[]
  /** The value of `Signed-By`: a file name, or a key block whose lines are kept; undefined when the system's keys hold. */
  readonly signedBy: string | undefined
}

/** The enabled binary sources of a classic `sources.list` file: `deb [signed-by=…] uri suite component…`. */
export function parseListFile(text: string): readonly AptSource[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)([^#]*)/.exec(line)
    const [, options, uri, suite, components] = match ?? []
    if (uri === undefined || suite === undefined) return []
    return {
      uris: [uri],
      suites: [suite],
      components: words(components),
      signedBy: /(?:^|\s)signed-by=(\S+)/i.exec(options ?? '')?.[1],
    }
  })
}

/** The enabled binary sources of a deb822 `.sources` file. */
export function parseSourcesFile(text: string): readonly AptSource[] {
  const withoutComments = text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
  return withoutComments.split(/\n\s*\n/).flatMap((stanza) => {
    const fields = parseStanza(stanza)
    const enabled = (fields.get('enabled') ?? 'yes').trim().toLowerCase()
    if (!words(fields.get('types')).includes('deb') || ['no', 'false', '0', 'off'].includes(enabled)) return []
    return {
      uris: words(fields.get('uris')),
      suites: words(fields.get('suites')),
      components: words(fields.get('components')),
      signedBy: fields.get('signed-by')?.trim(),
    }
  })
}

/** Where the main archive of `codename` (such as `bookworm`) is taken from, or undefined. */
export function mainArchive(
  sources: readonly AptSource[],
  codename: string,
): { readonly uri: string; readonly signedBy: string | undefined } | undefined {
  const names = [codename, 'stable', 'testing', 'unstable', 'sid']
  for (const source of sources) {
    const uri = source.uris.find((candidate) => !candidate.startsWith('cdrom:'))
    const isMain = source.components.includes('main') && source.suites.some((suite) => names.includes(suite))
    if (uri !== undefined && isMain) return { uri, signedBy: source.signedBy }
  }
  return undefined
}

/** Field names in lower case; continuation lines are kept with their line ends. */
export function parseStanza(stanza: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  let current: string | undefined
  for (const line of stanza.split('\n')) {
    const field = /^([^\s:#][^:]*):(.*)$/.exec(line)
    if (field?.[1] !== undefined) {
      current = field[1].toLowerCase()
      fields.set(current, field[2] ?? '')
    } else if (current !== undefined && /^\s/.test(line)) {
      fields.set(current, `${fields.get(current)}\n${line}`)
    }
  }
  return fields
}

function words(text: string | undefined): readonly string[] {
  return (text ?? '').split(/\s+/).filter((word) => word !== '')
}

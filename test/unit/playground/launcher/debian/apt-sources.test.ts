import { describe, expect, test } from '@jest/globals'
import {
  type AptSource,
  mainArchive,
  parseListFile,
  parseSourcesFile,
} from '../../../../../playground/launcher/debian/apt-sources.ts'
import { sidSourceText } from '../../../../../playground/launcher/debian/install-packages.ts'

const source = (part: Partial<AptSource>): AptSource => ({
  uris: ['http://mirror.example/debian'],
  suites: ['bookworm'],
  components: ['main'],
  signedBy: undefined,
  ...part,
})

describe('parseListFile', () => {
  test.each<{ name: string; text: string; sources: readonly AptSource[] }>([
    { name: 'a plain line', text: 'deb http://mirror.example/debian bookworm main\n', sources: [source({})] },
    {
      name: 'options, several components and a comment behind',
      text: 'deb [ arch=amd64 signed-by=/usr/share/keyrings/k.gpg ] http://mirror.example/debian bookworm main contrib # mine',
      sources: [source({ components: ['main', 'contrib'], signedBy: '/usr/share/keyrings/k.gpg' })],
    },
    { name: 'a source line', text: 'deb-src http://mirror.example/debian bookworm main', sources: [] },
    { name: 'a comment', text: '# deb http://mirror.example/debian bookworm main', sources: [] },
    { name: 'an unfinished line', text: 'deb http://mirror.example/debian', sources: [] },
    { name: 'nothing', text: '', sources: [] },
  ])('$name', ({ text, sources }) => {
    expect(parseListFile(text)).toEqual(sources)
  })
})

describe('parseSourcesFile', () => {
  test('two stanzas with comments between their fields', () => {
    const text = [
      'Types: deb deb-src',
      '# from an image',
      'URIs: http://mirror.example/debian',
      'Suites: bookworm bookworm-updates',
      'Components: main',
      'Signed-By: /usr/share/keyrings/k.gpg',
      '',
      'Types: deb',
      'URIs: http://mirror.example/security',
      'Suites: bookworm-security',
      'Components: main',
      '',
    ].join('\n')
    expect(parseSourcesFile(text)).toEqual([
      source({ suites: ['bookworm', 'bookworm-updates'], signedBy: '/usr/share/keyrings/k.gpg' }),
      source({ uris: ['http://mirror.example/security'], suites: ['bookworm-security'] }),
    ])
  })

  test('a key block keeps its lines', () => {
    const text =
      'Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n'
    expect(parseSourcesFile(text)).toEqual([source({ signedBy: '-----BEGIN\n .\n abc' })])
  })

  test.each([
    { name: 'a disabled stanza', text: 'Enabled: no\nTypes: deb\nURIs: u\nSuites: s\nComponents: main' },
    { name: 'a stanza of sources only', text: 'Types: deb-src\nURIs: u\nSuites: s\nComponents: main' },
    { name: 'an empty file', text: '' },
    { name: 'only comments', text: '# Types: deb\n#\n' },
  ])('$name counts for nothing', ({ text }) => {
    expect(parseSourcesFile(text)).toEqual([])
  })
})

describe('mainArchive', () => {
  test.each<{ name: string; sources: readonly AptSource[]; uri: string | undefined }>([
    {
      name: 'the archive of the release, not its security archive',
      sources: [source({ uris: ['http://s.example'], suites: ['bookworm-security'] }), source({})],
      uri: 'http://mirror.example/debian',
    },
    {
      name: 'a release named by its stage',
      sources: [source({ suites: ['stable'] })],
      uri: 'http://mirror.example/debian',
    },
    { name: "another vendor's archive", sources: [source({ suites: ['nodistro'] })], uri: undefined },
    { name: 'an archive without main', sources: [source({ components: ['contrib'] })], uri: undefined },
    { name: 'a disc', sources: [source({ uris: ['cdrom:[Debian]/'] })], uri: undefined },
    { name: 'no source', sources: [], uri: undefined },
  ])('$name', ({ sources, uri }) => {
    expect(mainArchive(sources, 'bookworm')?.uri).toBe(uri)
  })
})

describe('sidSourceText', () => {
  test('takes over mirror and key, and reads as what it says', () => {
    const archive = { uri: 'http://mirror.example/debian', signedBy: '/k.gpg' }
    expect(parseSourcesFile(sidSourceText(archive))).toEqual([source({ suites: ['sid'], signedBy: '/k.gpg' })])
  })

  test('leaves the key to the system where the machine does', () => {
    const archive = { uri: 'http://mirror.example/debian', signedBy: undefined }
    expect(parseSourcesFile(sidSourceText(archive))).toEqual([source({ suites: ['sid'] })])
  })
})

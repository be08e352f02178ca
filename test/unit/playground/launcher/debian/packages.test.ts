import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type AptLists, aptConfiguration } from '../../../../../playground/launcher/debian/apt.ts'
import { parseInstalled } from '../../../../../playground/launcher/debian/installed-packages.ts'
import { libraryClosure, libraryDependencies } from '../../../../../playground/launcher/debian/library-closure.ts'
import { filesMatching, libraryFolders } from '../../../../../playground/launcher/debian/library-folders.ts'
import { parseOsRelease, readAptSources } from '../../../../../playground/launcher/debian/read-apt-sources.ts'

describe('libraryDependencies', () => {
  test.each([
    {
      name: 'versions and alternatives',
      depends: 'libllama0 (= 1:0.7.0+dfsg-2), debconf, wget | curl, libstdc++6 (>= 14) | libc++1',
      libraries: ['libllama0', 'libstdc++6'],
    },
    { name: 'libraries with other names', depends: 'zlib1g (>= 1:1.1), lua-cjson', libraries: ['zlib1g', 'lua-cjson'] },
    {
      name: 'packages with a library name and nothing to load',
      depends: 'libc-bin, libc-gconv-modules-extra (= 2.43-7), libterm-readline-perl, libc6 (>= 2.43)',
      libraries: ['libc6'],
    },
    { name: 'nothing', depends: '', libraries: [] },
  ])('$name', ({ depends, libraries }) => {
    expect(libraryDependencies(depends)).toEqual(libraries)
  })
})

describe('libraryClosure', () => {
  const depends: Readonly<Record<string, string>> = {
    'redis-server': 'redis-tools (= 7), adduser',
    'redis-tools': 'libssl3, libsystemd0, libc6',
    libssl3: 'libc6, zlib1g',
    libsystemd0: 'libcap2',
    zlib1g: 'libc6',
    libc6: 'libgcc-s1',
    'libgcc-s1': 'libc6',
    libcap2: 'libc6',
  }
  const dependsOf = async (names: readonly string[]): Promise<readonly string[]> =>
    names.map((name) => depends[name] ?? '')

  test('follows libraries, also in a circle', async () => {
    const packages = await libraryClosure({
      packages: ['redis-server', 'redis-tools'],
      dependsOf,
      isNeeded: () => true,
    })
    expect([...packages].sort()).toEqual(
      ['libc6', 'libcap2', 'libgcc-s1', 'libssl3', 'libsystemd0', 'redis-server', 'redis-tools', 'zlib1g'].sort(),
    )
  })

  test('does not ask what a library needs that is there already', async () => {
    const packages = await libraryClosure({
      packages: ['redis-tools'],
      dependsOf,
      isNeeded: (library) => library !== 'libsystemd0' && library !== 'libc6',
    })
    expect([...packages].sort()).toEqual(['libssl3', 'redis-tools', 'zlib1g'])
  })
})

test('parseInstalled leaves out what is only configured', () => {
  expect(parseInstalled('installed libc6\nconfig-files redis-server\nnot-installed x\ninstalled zlib1g\n')).toEqual([
    'libc6',
    'zlib1g',
  ])
})

describe('parseOsRelease', () => {
  test.each([
    { name: 'bare values', text: 'ID=debian\nVERSION_CODENAME=bookworm\n', id: 'debian', codename: 'bookworm' },
    { name: 'quoted values', text: 'ID="ubuntu"\nVERSION_CODENAME=\'noble\'', id: 'ubuntu', codename: 'noble' },
    { name: 'similar names', text: 'VERSION_ID="12"\nID_LIKE=debian\n', id: undefined, codename: undefined },
  ])('$name', ({ text, id, codename }) => {
    expect(parseOsRelease(text)).toEqual({ id, codename })
  })
})

describe('aptConfiguration', () => {
  const systemDump = [
    'APT::Update::Post-Invoke:: "rm -f /var/cache/apt/*.bin";',
    'Acquire "";',
    'Acquire::http::Proxy "http://proxy.example:3128";',
    'Dir::State "var/lib/apt";',
  ].join('\n')
  const write = (lists: AptLists): string => aptConfiguration({ folder: '/f', lists, systemDump })

  test('takes over how to fetch, and neither hooks nor folders', () => {
    expect(write({ kind: 'system' })).toContain('Acquire::http::Proxy "http://proxy.example:3128";')
    expect(write({ kind: 'system' })).not.toMatch(/Post-Invoke|var\/lib\/apt/)
  })

  test.each<{ name: string; lists: AptLists; state: boolean; sources: boolean }>([
    { name: "the system's lists", lists: { kind: 'system' }, state: false, sources: false },
    {
      name: "lists of our own of the system's sources",
      lists: { kind: 'private', sourcesText: undefined },
      state: true,
      sources: false,
    },
    {
      name: 'lists of our own of another source',
      lists: { kind: 'private', sourcesText: 'Types: deb' },
      state: true,
      sources: true,
    },
  ])('$name', ({ lists, state, sources }) => {
    expect(write(lists).includes('Dir::State::lists "/f/lists";')).toBe(state)
    expect(write(lists).includes('Dir::Etc::sourceparts "/f/sources";')).toBe(sources)
  })
})

describe('folders', () => {
  let folder = ''
  const put = async (path: string, text = ''): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'launcher-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  test('libraryFolders finds the platform folders and one level below', async () => {
    await put('usr/lib/x86_64-linux-gnu/libssl.so.3')
    await put('usr/lib/x86_64-linux-gnu/llama/libllama-server-impl.so')
    await put('usr/lib/x86_64-linux-gnu/gconv/UTF-16.so')
    await put('usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-cpu-x64.so')
    await put('lib/x86_64-linux-gnu/libcap.so.2.66')
    await put('usr/share/doc/libx/copyright')
    expect(await libraryFolders(folder)).toEqual([
      join(folder, 'lib/x86_64-linux-gnu'),
      join(folder, 'usr/lib/x86_64-linux-gnu'),
      join(folder, 'usr/lib/x86_64-linux-gnu/llama'),
    ])
  })

  test('filesMatching answers nothing for a folder that is not there', async () => {
    expect(await filesMatching(join(folder, 'none'), /./)).toEqual([])
  })

  test('readAptSources reads both forms in the order of names, and nothing else', async () => {
    await put('sources.list', 'deb http://one.example a main\n')
    await put('sources.list.d/b.list', 'deb http://three.example c main\n')
    await put('sources.list.d/a.sources', 'Types: deb\nURIs: http://two.example\nSuites: b\nComponents: main\n')
    await put('sources.list.d/c.list.disabled', 'deb http://four.example d main\n')
    const sources = await readAptSources({ aptFolder: folder })
    expect(sources.flatMap((source) => source.uris)).toEqual([
      'http://one.example',
      'http://two.example',
      'http://three.example',
    ])
  })

  test('readAptSources answers nothing where there is no apt', async () => {
    expect(await readAptSources({ aptFolder: join(folder, 'none') })).toEqual([])
  })
})

import { listConfigOptions } from './config-options.ts'

/** The table of docs/configuration.md, in Markdown: every option, how to set it, and what it does. */
export const renderConfigTable = (): string =>
  [
    '| option | environment | value | default | what it does |',
    '| --- | --- | --- | --- | --- |',
    ...listConfigOptions().map((option) => {
      const envNames = [option.envName, option.plainEnvName].filter((name) => name !== undefined)
      const cells = [
        `\`${option.path.join('.')}\``,
        envNames.map((name) => `\`${name}\``).join(' or '),
        option.range,
        option.defaultText ?? '–',
        option.description,
      ]
      return `| ${cells.join(' | ')} |`
    }),
  ].join('\n')

/** The same for a terminal: one short paragraph for each option. */
export const renderConfigHelp = (): string =>
  listConfigOptions()
    .map((option) => {
      const envNames = [option.envName, option.plainEnvName].filter((name) => name !== undefined).join(', ')
      const facts = `${option.range}${option.defaultText === undefined ? '' : `; default: ${option.defaultText}`}`
      return `${option.path.join('.')}  (${envNames})\n  ${facts}\n  ${option.description}\n`.replaceAll('`', '')
    })
    .join('\n')

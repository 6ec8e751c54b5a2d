/** Licenses ask that their text goes with what is made of a package, also where its archive does not have it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type BundledPackage = {
  readonly name: string
  readonly version: string
  readonly license: string
  /** In the repository, as the lock file names it: `node_modules/…`. */
  readonly folder: string
}

/** Of a package without a license file: what its texts are, by the identifiers in its package.json. */
const standardTexts: Readonly<Record<string, (repository: string, folder: string) => string | undefined>> = {
  'Apache-2.0': (repository) => readFileSync(join(repository, 'LICENSE'), 'utf8'),
  MIT: mitText,
  'BSD-3-Clause': googleText,
}

/** All that the licenses of a bundled package say. @throws Error for a package that nobody has looked at */
export function licenseText(repository: string, { name, license, folder }: BundledPackage): string {
  const file = readdirSync(join(repository, folder)).find((one) => /^licen[cs]e/i.test(one))
  if (file !== undefined) return readFileSync(join(repository, folder, file), 'utf8').trim()
  const texts = license
    .replaceAll(/[()]/g, '')
    .split(/ AND | OR /)
    .map((identifier) => standardTexts[identifier]?.(repository, folder)?.trim())
  if (texts.length === 0 || texts.includes(undefined) || texts.includes(''))
    throw new Error(`${name}: its archive has no license file, and nothing here knows the text of ${license}`)
  return texts.join('\n\n')
}

function mitText(repository: string, folder: string): string | undefined {
  const { author } = JSON.parse(readFileSync(join(repository, folder, 'package.json'), 'utf8')) as { author?: string }
  return author === undefined ? undefined : `MIT License\n\nCopyright (c) ${author}\n\n${mitTerms}`
}

const mitTerms = `Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.`

/** The one file of protobuf that is Google's starts with it. */
function googleText(repository: string, folder: string): string | undefined {
  const lines = readFileSync(join(repository, folder, 'dist/esm/wire/varint.js'), 'utf8').split('\n')
  const end = lines.findIndex((line) => !line.startsWith('//'))
  const text = lines.slice(0, end).map((line) => line.replace(/^\/\/ ?/, ''))
  return text[0]?.startsWith('Copyright') === true ? text.join('\n') : undefined
}

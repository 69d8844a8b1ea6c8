// SPDX-License-Identifier: Apache-2.0
// What says most of a function's name, as krait_symbol_brief() of src/base/symbol.h. The script of pictures has it too: it calls
// symbols.brief() (src/view/flame.js).

/** "libz+0x5d80" of "libz.so.1.2.13+0x5d80", else the last component. */
export function brief(name: string): string {
  const address = /^((?:lib)?python3\.\d+|[^./ ]+)[^/ ]*(\+0x[0-9a-f]+(?: .*)?)$/.exec(name);
  if (address) return `${address[1]}${address[2]}`;
  const component = behindScopes(name);
  if (component !== name) return component;
  const last = name.slice(name.lastIndexOf('.') + 1);
  return !last || /^(\d+|cold)( |$)/.test(last) ? name : last;
}

/** "reserve" of "std::vector<int>::reserve"; of a lambda the function that it is in, too. */
function behindScopes(name: string): string {
  let open = 0, last = 0;
  for (let i = 0; i < name.length; i++) {
    if ('([{<'.includes(name[i])) open++;
    else if (open && ')]}>'.includes(name[i]) && name.slice(i - 1, i + 1) !== '->') open--;
    if (!open && name.startsWith('::', i) && !/^([{<]|operator\(\))/.test(name.slice(i + 2))) last = i + 2;
  }
  return name.slice(last);
}

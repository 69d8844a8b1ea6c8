/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of C++ and Rust functions, of symbols that g++ and rustc write.
 */
#include "remote/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_name(const char *symbol, const char *expected)
{
    KRAIT_AUTO_BUF name = { 0 };
    krait_demangle(&name, symbol);
    assert_string_equal(name.data, expected);
}

static void test_names_of_cpp_functions_have_neither_parameters_nor_return_type(void **state)
{
    (void)state;
    assert_name("_Z7handleri", "handler");
    assert_name("_ZN1AD2Ev", "A::~A");
    assert_name("_ZNK4shop6BasketIiE5totalERKSt6vectorIiSaIiEE", "shop::Basket<int>::total");
    assert_name("_ZNK4shop6BasketIiE3sumIdEET_S3_", "shop::Basket<int>::sum<double>");
    assert_name("_ZN4shop12_GLOBAL__N_15Inner3runESt8functionIFviEE",
                "shop::(anonymous namespace)::Inner::run");
    assert_name("_ZN4shop5namesILi3EEEPKPKcNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                "shop::names<3>");
    assert_name("_ZN4shop4textB5cxx11Ei", "shop::text[abi:cxx11]");
    assert_name("_ZThn8_N1C1gEv", "non-virtual thunk to C::g");
    assert_name("_Z8thandlerIiEPFvcET_", "void (*thandler<int>(int))(char)");
}

static void test_names_of_operators_and_lambdas_stay_whole(void **state)
{
    (void)state;
    assert_name("_ZNK4shop4ItemclEi", "shop::Item::operator()");
    assert_name("_ZNK4shop4ItemltERKS0_", "shop::Item::operator<");
    assert_name("_ZN4shop4ItemptEv", "shop::Item::operator->");
    assert_name("_ZNK4shop4ItemcvbEv", "shop::Item::operator bool");
    assert_name("_ZN4shop4ItemnwEm", "shop::Item::operator new");
    assert_name("_ZgtIiEbT_St6vectorIS0_SaIS0_EE", "operator><int>");
    assert_name("_ZlsIiERSoS0_RKN4shop6BasketIT_EE", "operator<< <int>");
    assert_name("_ZZN4shop7lambdasEiENKUliE_clEi", "shop::lambdas(int)::{lambda(int)#1}::operator()");
    assert_name("_ZZZN4shop7lambdasEiENKUliE_clEiENKUlT_E_clIdEEDaS1_",
                "shop::lambdas(int)::{lambda(int)#1}::operator()(int) "
                "const::{lambda(auto:1)#1}::operator()<double>");
}

static void test_old_symbols_of_rust_have_no_hash(void **state)
{
    (void)state;
    assert_name("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
    assert_name("_ZN60_$LT$app..Cart$u20$as$u20$core..iter..Iterator$LT$u8$GT$$GT$4next17h930b740aa94f1d3aE",
                "<app::Cart as core::iter::Iterator<u8>>::next");
    assert_name("_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h930b740aa94f1d3aE.llvm.123456",
                "app::main::{{closure}}");
    assert_name("_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h930b740aa94f1d3aE",
                "core::ops::function::FnOnce::call_once{{vtable.shim}}");
}

/* Of PyPI's cryptography, tokenizers and rpds, and of RFC 2603. */
static void test_new_symbols_of_rust_are_paths(void **state)
{
    (void)state;
    assert_name("_RNvC6_123foo3bar", "123foo::bar");
    assert_name("_RNvCs1234_7mycrate3foo", "mycrate::foo");
    assert_name("_RNCNvC7mycrate4mains_0", "mycrate::main::{closure#1}");
    assert_name("_RNSNvC7mycrate4main6vtable", "mycrate::main::{shim:vtable#0}");
    assert_name("_RNvMs_Cs4Cv8Wi1oAIB_7mycrateNtB4_7Example3foo", "<mycrate::Example>::foo");
    assert_name("_RNvXCs15kBYyAo9fc_7mycrateNtB2_7ExampleNtB2_5Trait3foo",
                "<mycrate::Example as mycrate::Trait>::foo");
    assert_name("_RINvNtC3std3mem8align_ofdE.llvm.123", "std::mem::align_of::<f64>");
    assert_name(
        "_RINvCsbAR6J2q9fZI_15spm_precompiled11from_base64QINtNtCsc63NoyXJ0tm_10serde_json2de12Deserial"
        "izerNtNtBQ_4read7StrReadEECs84oBVal8Hga_10tokenizers",
        "spm_precompiled::from_base64::<&mut serde_json::de::Deserializer<serde_json::read::StrRead>>");
}

static void test_types_of_rust_are_written_as_in_its_source(void **state)
{
    (void)state;
    assert_name("_RINvC1a1fAhj10_E", "a::f::<[u8; 16]>");
    assert_name("_RINvC1a1fSeThETlbEE", "a::f::<[str], (u8,), (i32, bool)>");
    assert_name("_RINvC1a1fRL_ePyOzE", "a::f::<&str, *const u64, *mut !>");
    assert_name("_RINvC1a1fFUKCjEuFEdFK8_fastcallpEoE",
                "a::f::<unsafe extern \"C\" fn(usize), fn() -> f64, extern \"fastcall\" fn(_) -> u128>");
    assert_name("_RINvC1a1fDNtC1a1TINtC1a1UlEp6Outputup1XhEL_E",
                "a::f::<dyn a::T + a::U<i32, Output = (), X = u8>>");
    assert_name("_RINvC1a1fKb1_Kan80_Kc41_Kcae_Ko10000000000000000_KpL_E",
                "a::f::<true, -128, 'A', '\\u{ae}', 0x10000000000000000, _, '_>");
}

static void test_a_path_that_leads_to_itself_is_no_name(void **state)
{
    (void)state;
    assert_name("_RYDB1_Z", "_RYDB1_Z");
}

static void test_parts_of_functions_keep_their_suffix(void **state)
{
    (void)state;
    assert_name("_ZN4shop3sumEi.cold", "shop::sum.cold");
    assert_name("_ZN4shop3sumEi.part.0.llvm.99", "shop::sum.part.0");
    assert_name("sum.part.0", "sum.part.0");
}

static void test_versions_of_symbols_go(void **state)
{
    (void)state;
    assert_name("nanosleep@@GLIBC_2.2.5", "nanosleep");
    assert_name("memcpy@GLIBC_2.2.5", "memcpy");
    assert_name("_ZN1AD2Ev@@V1", "A::~A");
    assert_name("@", "@");
}

static void test_other_symbols_stay_as_they_are(void **state)
{
    (void)state;
    static const char *const symbols[] = { "_PyEval_EvalFrameDefault",
                                           "_Z",
                                           "_ZN",
                                           "_ZN4shop",
                                           "_ZN99shop3sumEi",
                                           "_Zxy",
                                           "_ZN3$u$17h0123456789abcdef",
                                           "_ZN99999999999999999999999a17h0123456789abcdefE",
                                           "_R",
                                           "_RNv",
                                           "_RNvC7mycrate",
                                           "_RNvC7mycrate3fo",
                                           "_RNvC99999999999999999999mycrate3foo",
                                           "_RNvB_3foo",
                                           "_RNvBz_3foo",
                                           "_RNvC7mycrate3foo!",
                                           "_RINvC7mycrate3fooKh7E",
                                           "_RYDC1aE3foo" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(symbols); i++)
        assert_name(symbols[i], symbols[i]);
    assert_name("_Z1(", "(");
    assert_name("_ZN5$u0$a17h0123456789abcdefE", "$u0$a");
    assert_name("_ZN9$ud83dff$17h0123456789abcdefE", "$ud83dff$");
}

/* Each parameter is a pair of the one before: 2^40 characters. */
static void test_a_short_symbol_for_an_endless_name_stays_as_it_is(void **state)
{
    (void)state;
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    KRAIT_AUTO_BUF symbol = { 0 };
    krait_buf_str(&symbol, "_Z1fSt4pairIiiE");
    for (int i = 0; i < 36; i++)
        krait_buf_fmt(&symbol, "S_IS%c_S%c_E", digits[i], digits[i]);
    assert_name(symbol.data, symbol.data);
}

/* A number as references have it: "_" is 0, "0_" is 1. */
static void put_base62(struct krait_buf *to, size_t number)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (number > 62)
        krait_buf_char(to, digits[(number - 1) / 62]);
    if (number)
        krait_buf_char(to, digits[(number - 1) % 62]);
    krait_buf_char(to, '_');
}

/* Each type is a pair of the one before; and one that refers to itself. */
static void test_a_rust_symbol_for_an_endless_name_stays_as_it_is(void **state)
{
    (void)state;
    KRAIT_AUTO_BUF symbol = { 0 };
    krait_buf_str(&symbol, "_RINvC1a1f");
    for (size_t i = 0, before = 0; i < 40; i++) {
        size_t at = symbol.len - strlen("_R");
        krait_buf_str(&symbol, i ? "TB" : "Thh");
        if (i) {
            put_base62(&symbol, before);
            krait_buf_char(&symbol, 'B');
            put_base62(&symbol, before);
        }
        krait_buf_char(&symbol, 'E');
        before = at;
    }
    krait_buf_char(&symbol, 'E');
    assert_name(symbol.data, symbol.data);
    assert_name("_RINvC1a1fTB7_EE", "_RINvC1a1fTB7_EE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_cpp_functions_have_neither_parameters_nor_return_type),
        cmocka_unit_test(test_names_of_operators_and_lambdas_stay_whole),
        cmocka_unit_test(test_old_symbols_of_rust_have_no_hash),
        cmocka_unit_test(test_new_symbols_of_rust_are_paths),
        cmocka_unit_test(test_types_of_rust_are_written_as_in_its_source),
        cmocka_unit_test(test_a_path_that_leads_to_itself_is_no_name),
        cmocka_unit_test(test_parts_of_functions_keep_their_suffix),
        cmocka_unit_test(test_versions_of_symbols_go),
        cmocka_unit_test(test_other_symbols_stay_as_they_are),
        cmocka_unit_test(test_a_rust_symbol_for_an_endless_name_stays_as_it_is),
        cmocka_unit_test(test_a_short_symbol_for_an_endless_name_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

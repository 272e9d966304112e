"""The built-in functions of Spark 3.5, 4.0 and 4.1 by what they are to a refresh: names -> scalar, aggregate or generator.

Made by `python tests/spark/function_registry.py --write`, which reads what Spark's registry says; a test says when it is out of date.
"""

from __future__ import annotations

SCALARS = frozenset(
    """
    abs acos acosh add_months aggregate and array array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort
    array_union arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh base64 between bin bit_count bit_get bit_length bround
    btrim cardinality cast cbrt ceil ceiling char char_length character_length chr coalesce collation concat concat_ws contains conv
    convert_timezone cos cosh cot crc32 csc date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd
    datediff datepart day dayname dayofmonth dayofweek dayofyear decode degrees div e element_at elt encode endswith equal_null exists
    exp expm1 extract factorial filter find_in_set flatten floor forall format_number format_string from_csv from_json from_unixtime
    from_utc_timestamp from_xml get get_json_object getbit greatest hash hex hour hypot if ifnull ilike in initcap instr is_valid_utf8
    is_variant_null isnan isnotnull isnull json_array_length json_object_keys last_day lcase least left len length levenshtein like ln
    locate log log10 log1p log2 lower lpad ltrim luhn_check make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter map_from_arrays
    map_from_entries map_keys map_values map_zip_with mask md5 minute mod month monthname months_between named_struct nanvl negative
    next_day not nullif nullifzero nvl nvl2 octet_length or overlay parse_json parse_url pi pmod position positive pow power printf
    quarter quote radians reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
    regexp_substr repeat replace reverse right rint rlike round rpad rtrim schema_of_csv schema_of_json schema_of_variant
    schema_of_xml sec second sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign signum sin sinh size slice sort_array
    soundex space split split_part sqrt startswith str_to_map struct substr substring substring_index tan tanh timestamp_micros
    timestamp_millis timestamp_seconds to_binary to_char to_csv to_date to_json to_number to_timestamp to_timestamp_ltz
    to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar to_variant_object to_xml transform transform_keys transform_values
    translate trim trunc try_add try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_subtract try_to_binary try_to_date try_to_number
    try_to_timestamp try_url_decode try_validate_utf8 try_variant_get ucase unbase64 unhex unix_date unix_micros unix_millis
    unix_seconds unix_timestamp upper url_decode url_encode validate_utf8 variant_get weekday weekofyear when width_bucket xpath
    xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64 year zeroifnull
    zip_with
    """.split()
)
"""Deterministic functions of the values of one row, in every version that has them."""
AGGREGATES = frozenset(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg avg
    bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count
    count_if count_min_sketch covar_pop covar_samp every first first_value histogram_numeric hll_sketch_agg hll_union_agg
    kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg
    skewness some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg
    try_sum var_pop var_samp variance
    """.split()
)
"""Aggregate functions, whether or not their value depends on the order of rows."""
GENERATORS = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack
    """.split()
)
"""Functions that make rows of one row."""

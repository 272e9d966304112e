"""version of Spark -> the functions of Spark 3.5, 4.0 and 4.1 that it does not have.

Made by `python tests/spark/function_registry.py --write`, which reads what Spark's registry says; a test says when it is out of date.
"""

from __future__ import annotations

NEWER_THAN = {
    "3.5": frozenset(
        """
        approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate between bitmap_and_agg collate collation
        current_time dayname from_avro from_protobuf from_xml is_valid_utf8 is_variant_null kll_merge_agg_bigint kll_merge_agg_double
        kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint
        kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float listagg make_time make_valid_utf8 monthname nullifzero parse_json percentile_cont percentile_disc quote
        randstr schema_of_avro schema_of_variant schema_of_variant_agg schema_of_xml session_user st_asbinary st_geogfromwkb
        st_geomfromwkb st_setsrid st_srid string_agg theta_difference theta_intersection theta_intersection_agg theta_sketch_agg
        theta_sketch_estimate theta_union theta_union_agg time time_diff time_trunc to_avro to_protobuf to_time to_variant_object to_xml
        try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_parse_json try_parse_url
        try_reflect try_to_date try_to_time try_url_decode try_validate_utf8 try_variant_get uniform validate_utf8 variant_get zeroifnull
        """.split()
    ),
    "4.0": frozenset(
        """
        approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate bitmap_and_agg current_time kll_merge_agg_bigint
        kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint
        kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float make_time quote st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid theta_difference
        theta_intersection theta_intersection_agg theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time time_diff
        time_trunc to_time try_to_date try_to_time
        """.split()
    ),
    "4.1": frozenset(
        """
        """.split()
    ),
}
